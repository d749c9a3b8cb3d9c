use std::collections::BTreeMap;

use super::*;

mod course;
mod lost;

const NOW: i64 = 1_800_000_000_000;
const CHANNEL: &str = "d9b74644-4f97-46aa-b8fa-9393985cd6cd";

fn candidate() -> Uaid {
    Uaid::from_random([9; 16])
}

fn session(rules: Rules) -> Session {
    let (session, actions) = Session::new(rules, "here".to_owned(), candidate());
    assert_eq!(actions, [Action::Wait(rules.hello_within)]);
    session
}

fn at<'a>(now_ms: i64, broadcasts: &'a Broadcasts) -> Surroundings<'a> {
    Surroundings { now_ms, broadcasts }
}

fn on(session: &mut Session, event: Event) -> Vec<Action> {
    session.on(event, at(NOW, &Broadcasts::default()))
}

fn text(session: &mut Session, text: &str) -> Vec<Action> {
    on(session, Event::Text(text.to_owned()))
}

fn greeted() -> Session {
    let mut session = session(Rules::AUTOPUSH);
    let actions = text(&mut session, r#"{"messageType":"hello"}"#);
    assert_eq!(actions.first(), Some(&Action::Enter(candidate())));
    session
}

fn hello(uaid: Uaid) -> String {
    format!(r#"{{"messageType":"hello","uaid":"{uaid}"}}"#)
}

fn register() -> String {
    format!(r#"{{"messageType":"register","channelID":"{CHANNEL}"}}"#)
}

fn channel() -> ChannelId {
    ChannelId::parse(CHANNEL).unwrap()
}

/// Gives the session these answers. Returns the actions that follow from the last.
fn answer(session: &mut Session, answers: impl IntoIterator<Item = Answer>) -> Vec<Action> {
    let actions = answers
        .into_iter()
        .map(|answer| on(session, Event::Answer(answer)));
    actions.last().unwrap()
}

fn check_close(actions: &[Action], expect: Close) {
    assert_eq!(actions, [Action::Close(expect)]);
}

#[test]
fn nothing_but_hello_comes_first() {
    for (event, expect) in [
        (Event::Text("{}".to_owned()), Close::OutOfPlace),
        (
            Event::Text(r#"{"messageType":"ping"}"#.to_owned()),
            Close::OutOfPlace,
        ),
        (Event::Text("rubbish".to_owned()), Close::Json),
        (Event::BadFrame, Close::UnsupportedMessage),
        (Event::TimeIsUp, Close::HandshakeTimeout),
    ] {
        let mut session = session(Rules::AUTOPUSH);
        check_close(&on(&mut session, event), expect);
        assert_eq!(session.leave(), Leaving::default());
    }
    let mut session = greeted();
    let again = text(&mut session, r#"{"messageType":"hello"}"#);
    check_close(&again, Close::OutOfPlace);
}

#[test]
fn close_frames_are_autopushs() {
    let said = [
        Close::Reset,
        Close::UnsupportedMessage,
        Close::OutOfPlace,
        Close::Json,
        Close::HandshakeTimeout,
        Close::PongTimeout,
        Close::TooMuch,
        Close::Restart,
    ]
    .map(|close| (close.code(), close.reason()));
    let expected = [
        (1000, "SM"),
        (1003, "UnsupportedMessage"),
        (1011, "SM"),
        (1011, "Json"),
        (1011, "HandshakeTimeout"),
        (1011, "PongTimeout"),
        (1008, "TooMuch"),
        (1012, "Restart"),
    ];
    assert_eq!(said, expected);
}

#[test]
fn who_is_unknown_gets_another_id_and_leaves_no_record() {
    let mut session = session(Rules::AUTOPUSH);
    let uaid = Uaid::from_random([1; 16]);
    let asked = text(&mut session, &hello(uaid));
    assert_eq!(asked, [Action::Call(Call::GetUser(uaid))]);
    let actions = on(&mut session, Event::Answer(Answer::User(None)));
    let is_hello = |action: &Action| matches!(action, Action::Send(ServerMessage::Hello { uaid, .. }) if *uaid == candidate());
    assert!(actions.iter().any(is_hello), "{actions:?}");
    let is_call = |action: &Action| matches!(action, Action::Call(_));
    assert!(!actions.iter().any(is_call));
}

#[test]
fn who_connects_elsewhere_meanwhile_is_not_taken_over() {
    let uaid = Uaid::from_random([1; 16]);
    let mut raced = session(Rules::AUTOPUSH);
    text(&mut raced, &hello(uaid));
    let user = User::connected(uaid, "there".to_owned(), NOW - 1);
    on(&mut raced, Event::Answer(Answer::User(Some(user))));
    let answer = Event::Answer(Answer::Done(false));
    check_close(&on(&mut raced, answer), Close::OutOfPlace);
}

#[test]
fn the_first_registration_makes_the_record_and_each_one_an_endpoint() {
    let mut session = greeted();
    for round in 0..2 {
        let asked = text(&mut session, &register());
        let is_for_endpoint = matches!(asked[..], [Action::Call(Call::MakeEndpoint { .. })]);
        assert!(is_for_endpoint);
        let endpoint = Answer::Endpoint(Some("https://push/".to_owned()));
        let mut asked = answer(&mut session, [endpoint]);
        if round == 0 {
            assert!(matches!(&asked[..], [Action::Call(Call::AddUser(_))]));
            asked = answer(&mut session, [Answer::Done(true)]);
        }
        assert!(matches!(&asked[..], [Action::Call(Call::AddChannel(_, _))]));
        let told = answer(&mut session, [Answer::Done(true)]);
        let outcome = Registered::At("https://push/".to_owned());
        assert_eq!(told, [registered(channel(), outcome)]);
    }
    let shouted = register().replace(CHANNEL, &CHANNEL.to_uppercase());
    check_close(&text(&mut session, &shouted), Close::OutOfPlace);
}

#[test]
fn a_registration_that_fails_says_so() {
    for (answers, expect) in [
        (vec![Answer::Endpoint(None)], Registered::BadKey),
        (
            vec![
                Answer::Endpoint(Some(String::new())),
                Answer::Done(true),
                Answer::Failed,
            ],
            Registered::Failed,
        ),
    ] {
        let mut session = greeted();
        text(&mut session, &register());
        let said = answer(&mut session, answers);
        assert_eq!(said, [registered(channel(), expect)]);
    }
}

#[test]
fn a_channel_that_is_not_there_is_unregistered_all_the_same() {
    for (answer, is_done) in [
        (Answer::Done(true), true),
        (Answer::Done(false), true),
        (Answer::Failed, false),
    ] {
        let mut session = greeted();
        let unregister = format!(r#"{{"messageType":"unregister","channelID":"{CHANNEL}"}}"#);
        text(&mut session, &unregister);
        let channel = channel();
        let told = on(&mut session, Event::Answer(answer));
        let expected = ServerMessage::Unregister { channel, is_done };
        assert_eq!(told, [Action::Send(expected)]);
    }
}

#[test]
fn pings_of_the_client_are_answered_unless_they_come_too_often() {
    let mut session = greeted();
    let broadcasts = Broadcasts::default();
    let ping = || Event::Text("{}".to_owned());
    let pong = [Action::Send(ServerMessage::Pong)];
    assert_eq!(session.on(ping(), at(NOW, &broadcasts)), pong);
    assert_eq!(session.on(ping(), at(NOW + 45_000, &broadcasts)), pong);
    let early = session.on(ping(), at(NOW + 89_999, &broadcasts));
    check_close(&early, Close::OutOfPlace);
}

#[test]
fn a_client_that_answers_no_ping_is_hung_up_on() {
    let mut session = greeted();
    let rules = Rules::AUTOPUSH;
    let pinged = [Action::Ping, Action::Wait(rules.pong_within)];
    assert_eq!(on(&mut session, Event::TimeIsUp), pinged);
    let rested = [Action::Wait(rules.ping_every)];
    assert_eq!(on(&mut session, Event::Pong), rested);
    assert_eq!(on(&mut session, Event::TimeIsUp), pinged);
    check_close(&on(&mut session, Event::TimeIsUp), Close::PongTimeout);
}

#[test]
fn a_ping_checks_that_the_record_names_this_node() {
    let rules = Rules::AUTOPUSH;
    let pinged = || vec![Action::Ping, Action::Wait(rules.pong_within)];
    let mut restored = pinged();
    restored.push(Action::Call(Call::FetchTopics(candidate())));
    for (answer, expected) in [
        (Answer::Presence(Presence::Recorded), pinged()),
        (Answer::Failed, pinged()),
        (Answer::Presence(Presence::Restored), restored),
        (
            Answer::Presence(Presence::Elsewhere),
            vec![Action::Close(Close::Restart)],
        ),
    ] {
        let mut session = session(rules);
        let uaid = candidate();
        text(&mut session, &hello(uaid));
        let user = User::connected(uaid, "here".to_owned(), NOW);
        let nothing = || Answer::Messages(Vec::new());
        let known = [
            Answer::User(Some(user)),
            Answer::Done(true),
            nothing(),
            nothing(),
        ];
        self::answer(&mut session, known);
        let asked = Action::Call(Call::ConfirmNode(uaid, "here".to_owned(), NOW));
        assert_eq!(on(&mut session, Event::TimeIsUp), [asked]);
        assert_eq!(on(&mut session, Event::Answer(answer)), expected);
    }
}

#[test]
fn broadcasts_come_instead_of_a_ping() {
    let mut broadcasts = Broadcasts::default();
    let versions = |version: &str| BTreeMap::from([("census".to_owned(), version.to_owned())]);
    broadcasts.replace(versions("1"));
    let mut session = session(Rules::AUTOPUSH);
    let hello = r#"{"messageType":"hello","broadcasts":{"census":"0","x":"1"}}"#;
    let said = session.on(Event::Text(hello.to_owned()), at(NOW, &broadcasts));
    let told = said.iter().any(|action| {
        matches!(action, Action::Send(ServerMessage::Hello { broadcasts, unknown, .. })
            if *broadcasts == versions("1") && unknown.contains("x"))
    });
    assert!(told, "{said:?}");
    broadcasts.replace(versions("2"));
    let said = session.on(Event::TimeIsUp, at(NOW, &broadcasts));
    let expected = ServerMessage::Broadcast {
        broadcasts: versions("2"),
        unknown: std::collections::BTreeSet::new(),
    };
    let wait = Action::Wait(Rules::AUTOPUSH.ping_every);
    assert_eq!(said, [Action::Send(expected), wait]);
    let said = session.on(Event::TimeIsUp, at(NOW, &broadcasts));
    assert_eq!(said.first(), Some(&Action::Ping));
}

#[test]
fn a_failing_storage_ends_the_session_and_keeps_what_was_sent_straight() {
    let mut session = greeted();
    let message = course::message("a", None, 60);
    on(&mut session, Event::Direct(message.clone()));
    on(&mut session, Event::CheckStorage);
    let failed = on(&mut session, Event::Answer(Answer::Failed));
    check_close(&failed, Close::OutOfPlace);
    assert_eq!(on(&mut session, Event::TimeIsUp), []);
    let left = session.leave();
    assert_eq!(left.uaid, Some(candidate()));
    assert_eq!(left.unacknowledged, [message]);
}
