//! The texts for people: a sentence for every state, every reason to be listed or not, and every
//! finding of a check, with advice.
//!
//! Each match is exhaustive, so that a new reason does not compile without its sentence. The page
//! contains all sentences, and the script reads them there. They mean the same as the output of
//! `fedicensus explain`.

use census::state::OptedOutBy;
use census::why::Reason;
use protocol::{DeadReason, Wall};

use super::why::{Found, Place, Why};

/// What a code means, and advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Words {
    pub says: &'static str,
    /// What the instance's owner can do; empty if nothing.
    pub advice: &'static str,
}

const fn words(says: &'static str, advice: &'static str) -> Words {
    Words { says, advice }
}

const NOTHING_TO_DO: &str = "";

/// The meaning of a state.
pub fn of_place(place: Place) -> &'static str {
    use census::state::StateName;
    match place {
        Place::Known(StateName::Discovered) => {
            "Known by name; no check has found it up or down yet."
        }
        Place::Known(StateName::Alive) => "It is up.",
        Place::Known(StateName::Dying) => "Its checks fail at the moment.",
        Place::Known(StateName::Dead) => {
            "No instance has answered here for a long time, so it is checked rarely."
        }
        Place::Known(StateName::Moving) => {
            "It redirects to another host, perhaps for a while only."
        }
        Place::Known(StateName::Moved) => "It has redirected to another host for more than a week.",
        Place::Waiting => "Another server named it; it waits in the queue of new names.",
        // No answer has these two states: they are withheld.
        Place::Withheld | Place::Known(StateName::OptedOut | StateName::Parked) => {
            "This census does not say."
        }
    }
}

/// One list of all reasons to be listed or not. The match over it is exhaustive, and longer than
/// clippy's limit for functions.
macro_rules! whys {
    ($($why:ident => $words:expr,)*) => {
        /// Why a host is listed or not, and advice.
        pub fn of_why(why: Why) -> Words {
            match why {
                $(Why::$why => $words,)*
            }
        }
    };
}

whys! {
    Lives => words("It is up.", NOTHING_TO_DO),
    LivesRefusing => words(
        "It was up within the last 14 days, but it refused our last check.",
        "Let our user agent read /.well-known/nodeinfo and the document that it links to. Otherwise it leaves the list 14 days after it last answered.",
    ),
    Failing => words(
        "It was up recently, and its checks have failed since.",
        "See what the last check found. After a week of failed daily checks an instance leaves the list.",
    ),
    MovingToNobody => words(
        "It redirects to another host, where we found no instance.",
        "If you moved for good, make sure that the new host serves NodeInfo under its own name. If you did not move, remove the redirect.",
    ),
    LeavesNext => words(
        "It no longer meets the conditions, and leaves with the next publication.",
        "See what the last check found.",
    ),
    NextList => words(
        "It meets all conditions, and appears with the next publication.",
        "Wait: the list is published about every six hours, and sooner after an opt-out. A list that lost too many names at once waits until the operator has looked at it.",
    ),
    Withheld => words(
        "Its owner asked to be left out, or this census does not list it.",
        "If it is yours and you want to be listed, look at its robots.txt and at its software's setting for statistics (metadata.private in NodeInfo, site.private with GNU Social and Friendica, hide_in_statistics with Hubzilla). If this census lets owners prove a host, the page for owners says why and takes your opt-out back. Otherwise write to the contact below.",
    ),
    TakenOver => words(
        "Another crawler's list, which was imported here, says that it was up, and no check of ours has confirmed that yet.",
        "Wait: it is listed once a check of ours has found it up.",
    ),
    RefusesSoFar => words(
        "A server answers, but it has refused all our checks so far.",
        "Let our user agent read /.well-known/nodeinfo and the document that it links to: a firewall, a challenge for browsers or a login blocks them.",
    ),
    NeverJudged => words(
        "We know its name and have not checked it yet.",
        "Wait: a new name is checked within about a day. Checks that fail on our side never count against it.",
    ),
    Gone => words(
        "It answered 410 Gone, which we treat as a request to be left out.",
        "If it is back, serve /.well-known/nodeinfo again: it is listed once it answers.",
    ),
    Dead => words(
        "No check has found an instance here for several days.",
        "See what the last check found. Once that is fixed, it is listed after the next check.",
    ),
    Moved => words(
        "It has redirected to another host for more than a week.",
        "Look up the other host's name. If the redirect is a mistake, remove it: the next check notices.",
    ),
    MovedToListed => words(
        "It redirects to another host, which is listed instead.",
        "Look up the other host's name. If the redirect is a mistake, remove it: the next check notices.",
    ),
    NeverAlive => words(
        "None of its checks has found an instance yet.",
        "See what the last check found.",
    ),
    Stale => words(
        "Its last checks found no instance, and no host stays on the list for more than 14 days without one.",
        "See what the last check found. Once that is fixed, it is listed after the next check.",
    ),
    GroupHeld => words(
        "There are more hosts below its registered domain than we list without further evidence. It is listed when two independent instances have named it for a week and it has responded twice, or when a moderator decides.",
        "Keep it running: instances that know it name it to us. Or write to the contact below and say what these hosts are.",
    ),
    Waiting => words(
        "Another server named it, and it waits in the queue: only a limited number of new names is taken per day.",
        "Wait: it is checked automatically. Names that most others know come first.",
    ),
}

/// Whether the last check's result gives better advice than the reason itself.
pub fn found_tells_more(why: Why) -> bool {
    match why {
        Why::LivesRefusing
        | Why::Failing
        | Why::LeavesNext
        | Why::TakenOver
        | Why::RefusesSoFar
        | Why::Dead
        | Why::NeverAlive
        | Why::Stale => true,
        Why::Lives
        | Why::MovingToNobody
        | Why::NextList
        | Why::Withheld
        | Why::NeverJudged
        | Why::Gone
        | Why::Moved
        | Why::MovedToListed
        | Why::GroupHeld
        | Why::Waiting => false,
    }
}

/// The text for the proven owner of a host: the site's answer, or the reason for which the site
/// withholds the host.
pub fn for_owner(reason: &Reason<'_>, site: Words) -> Words {
    match reason {
        Reason::Denied | Reason::GroupDenied => words(
            "The operator of this census keeps out the host, or all below its domain.",
            "Write to the operator.",
        ),
        Reason::OptedOut { by } => of_opt_out(*by),
        Reason::Parked => words("Its name is no longer valid.", "Write to the operator."),
        Reason::Hidden => words(
            "It asks to be left out of statistics, or no check could find out whether it does.",
            "Change its software's setting: metadata.private in NodeInfo, site.private with GNU Social and Friendica, hide_in_statistics with Hubzilla. The next check notices.",
        ),
        _ => site,
    }
}

fn of_opt_out(by: OptedOutBy) -> Words {
    match by {
        OptedOutBy::Robots => words(
            "Its robots.txt asks us to stay away.",
            "Allow Fedicensus there, then come back: robots.txt is read again at once, and decides.",
        ),
        OptedOutBy::Owner => words(
            "Its owner opted out.",
            "Come back, and it is listed after the next successful check.",
        ),
        OptedOutBy::Moderator => words(
            "A moderator of this census removed it.",
            "Only a moderator can take that back: write to the operator.",
        ),
    }
}

/// The text for a host that has no entry.
pub const UNKNOWN: Words = words(
    "We do not know this name. No peers list that we read contains it, or nothing answered there for a year, or the operator of this census does not admit it.",
    "An instance is found automatically once it federates with others whose software publishes its peers. Write to the contact below to have it checked soon, or to learn whether it is admitted.",
);

/// The code of a finding: the wire's where there is one.
pub fn found_word(found: Found) -> &'static str {
    match found {
        Found::Alive => "alive",
        Found::Moved => "redirected",
        Found::OptedOut => "refused_by_robots",
        Found::Gone => "answered_gone",
        Found::Refused(None) => "refused",
        Found::Refused(Some(wall)) => of_wall(wall).0,
        Found::Dead(reason) => of_reason(reason).0,
    }
}

/// The meaning of a finding, and advice.
pub fn of_found(found: Found) -> Words {
    match found {
        Found::Alive => words("It answered as an instance.", NOTHING_TO_DO),
        Found::Moved => words(
            "It redirected permanently (301 or 308) to another host.",
            NOTHING_TO_DO,
        ),
        Found::OptedOut => words("Its robots.txt asked us to stay away.", NOTHING_TO_DO),
        Found::Gone => words("It answered 410 Gone.", NOTHING_TO_DO),
        Found::Refused(None) => words(
            "It answered but refused us: status 401, 403, 429, 451 or 503 with Retry-After.",
            "Let our user agent read /robots.txt, /.well-known/nodeinfo and the document that it links to.",
        ),
        Found::Refused(Some(wall)) => of_wall(wall).1,
        Found::Dead(reason) => of_reason(reason).1,
    }
}

/// What every wall has to let through. A macro, since `concat!` takes no constant.
macro_rules! lets {
    () => {
        "/robots.txt, /.well-known/nodeinfo and the document that it links to, for user agents that begin with Fedicensus/."
    };
}

/// One list of all findings: the page has a sentence for each, and no others.
macro_rules! reasons {
    (walls { $($wall:ident => ($code:literal, $name:literal, $lets:literal),)* }
     $($reason:ident => ($word:literal, $says:literal, $advice:expr),)*) => {
        pub const FOUND: &[Found] = &[
            Found::Alive,
            Found::Moved,
            Found::OptedOut,
            Found::Gone,
            Found::Refused(None),
            $(Found::Refused(Some(Wall::$wall)),)*
            $(Found::Dead(DeadReason::$reason),)*
        ];

        fn of_wall(wall: Wall) -> (&'static str, Words) {
            match wall {
                $(Wall::$wall => (
                    concat!("wall_", $code),
                    words(concat!("A wall against robots refused us: ", $name, "."), concat!($lets, " ", lets!())),
                ),)*
            }
        }

        fn of_reason(reason: DeadReason) -> (&'static str, Words) {
            match reason {
                $(DeadReason::$reason => ($word, words($says, $advice)),)*
            }
        }
    };
}

const CONTACT_IF_IT_STAYS: &str =
    "If this persists while others reach you, write to the contact below.";

reasons! {
    walls {
        Akamai => ("akamai", "Akamai", "In Control Center, look up the reference number of a block and add an exception for"),
        Anubis => ("anubis", "Anubis", "Add a bot rule with action ALLOW (path_regex: ^/nodeinfo/) for"),
        AwsWaf => ("aws_waf", "AWS WAF", "In the rule group's scope-down statement, exclude"),
        Basedflare => ("basedflare", "haproxy-protection (BasedFlare)", "In ddos.map, give mode 0 to"),
        Bunny => ("bunny", "Bunny Shield", "Find the rule in the event log, and add an exception for"),
        Cleantalk => ("cleantalk", "CleanTalk", "In the anti-spam plugin, turn off Anti-Crawler, or allow"),
        Cloudflare => ("cloudflare", "Cloudflare", "Turn off Bot Fight Mode, which no rule can skip, and add a custom rule with action Skip for"),
        Crowdsec => ("crowdsec", "CrowdSec", "In the bouncer's EXCLUDE_LOCATION, add"),
        Datadome => ("datadome", "DataDome", "In its rules, exempt"),
        DdosGuard => ("ddos_guard", "DDoS-Guard", "Add a protection rule with action Pass for"),
        F5 => ("f5", "F5 BIG-IP", "In the security policy, exempt"),
        Fastly => ("fastly", "Fastly", "In the conditions of the challenge rule, exclude"),
        GoAway => ("go_away", "go-away", "Before the challenges, add a rule with action pass for"),
        Haphash => ("haphash", "haphash", "Leave out of the protected_path ACL"),
        Human => ("human", "HUMAN (PerimeterX)", "In px_filter_by_route, list"),
        Imperva => ("imperva", "Imperva (Incapsula)", "In the bot access control rule, add an exception for"),
        Imunify360 => ("imunify360", "Imunify360", "Ask the hoster to whitelist our address, or to allow"),
        ModSecurity => ("mod_security", "ModSecurity", "Before its rules, add an exclusion for"),
        Radware => ("radware", "Radware Bot Manager", "In its rules, exempt"),
        Safeline => ("safeline", "SafeLine", "In the challenge conditions of bot protection, skip"),
        Siteground => ("siteground", "SiteGround's anti-bot system", "Ask SiteGround's support to allow"),
        Sucuri => ("sucuri", "Sucuri", "Under Access Control, allow"),
        Vercel => ("vercel", "Vercel's firewall", "Add a rule with action Bypass for"),
        Wordfence => ("wordfence", "Wordfence", "In the firewall options, allow"),
        Unnamed => ("unnamed", "a challenge of a product that we don't know", "Let it pass"),
    }
    RobotsUnavailable => ("robots_unavailable", "Its robots.txt could not be read (status 5xx, or the answer broke off), and without it nothing else is requested.", "Serve /robots.txt, or answer 404 for it."),
    Tls => ("tls", "The TLS handshake failed, for instance because port 443 does not speak TLS.", "Check the web server's TLS settings for this name."),
    TlsExpired => ("tls_expired", "Its certificate has expired.", "Renew the certificate, and reload the web server."),
    TlsNotYetValid => ("tls_not_yet_valid", "Its certificate is not valid yet.", "Check the certificate's dates and the server's clock."),
    TlsWrongName => ("tls_wrong_name", "It has no certificate for this name.", "Get a certificate for exactly this name."),
    TlsSelfSigned => ("tls_self_signed", "Its certificate is self-signed.", "Get a certificate from a public authority."),
    TlsUnknownIssuer => ("tls_unknown_issuer", "No public authority that we trust issued its certificate.", "Get a certificate from a public authority, and serve the intermediate certificates that belong to it."),
    TlsIncompleteChain => ("tls_incomplete_chain", "It sent its own certificate without the intermediate ones, and no root that we trust issued that one.", "Serve the full chain (often a file named fullchain.pem)."),
    TlsUnsupported => ("tls_unsupported", "It supports no TLS version and cipher that we support (TLS 1.2 and 1.3).", "Turn on TLS 1.2 or 1.3 with a common cipher."),
    TlsClosed => ("tls_closed", "It closed the connection during the TLS handshake.", "Check that the web server, or the proxy in front of it, serves this name over TLS."),
    Http => ("http", "Its answer was not HTTP, or broke off.", "Check the web server and the proxy in front of it."),
    Timeout => ("timeout", "It accepted the connection and did not answer in time.", "Check that /.well-known/nodeinfo answers within ten seconds."),
    Deadline => ("deadline", "It answered so slowly that the check ran out of time.", "Check that /robots.txt and /.well-known/nodeinfo answer within a few seconds."),
    TooSlow => ("too_slow", "It sent less than 10 KiB in 10 seconds.", "Check how long /robots.txt, /.well-known/nodeinfo and the document that it links to take to load."),
    TooLarge => ("too_large", "It sent more bytes than such a document may have.", "Check what /.well-known/nodeinfo and the document that it links to send."),
    Encoding => ("encoding", "It sent a content encoding that we did not offer, or several.", "Check what compresses answers in front of your software."),
    RedirectLoop => ("redirect_loop", "It redirected too often.", "Serve /.well-known/nodeinfo without a chain of redirects."),
    RedirectToSelf => ("redirect_to_self", "It redirected to itself.", "Check the rules that redirect between http and https, or between spellings of the name."),
    TemporaryRedirect => ("temporary_redirect", "It redirected temporarily to another host (302, 303 or 307).", "If the instance is at the other host, redirect permanently (301 or 308). Otherwise serve /.well-known/nodeinfo here."),
    BadRedirect => ("bad_redirect", "Its redirect has no target, or one that is not a valid name.", "Check the Location header of the answer to /.well-known/nodeinfo."),
    NodeinfoElsewhere => ("nodeinfo_elsewhere", "Its NodeInfo document is on another host, where we do not follow it.", "Look up the other host's name. To have this one listed, its /.well-known/nodeinfo has to link to a document on this host."),
    NoNodeinfo => ("no_nodeinfo", "There is no /.well-known/nodeinfo, no supported link in it, or nothing behind the link.", "Your software or its reverse proxy has to serve NodeInfo; with some it has to be turned on."),
    NotNodeinfo => ("not_nodeinfo", "Something answered, but not with NodeInfo.", "Check that /.well-known/nodeinfo and the document that it links to are JSON with the software's name, and not a web page."),
    Status => ("status", "It answered with an unexpected status, such as 500 or 502.", "Check that your software runs behind its web server."),
    NoSuchName => ("no_such_name", "The name does not exist in DNS.", "Check that the domain is still registered and the name is in its zone."),
    NoAddress => ("no_address", "The name has no address in DNS.", "Give it an A or AAAA record."),
    AddressRefused => ("address_refused", "Its addresses are private or special ones, or the operator of this census does not connect to them.", "Check the A and AAAA records of the name."),
    DnsBroken => ("dns_broken", "Its name servers failed several times in a row.", "Check your name servers and DNSSEC."),
    Unreachable => ("unreachable", "None of its addresses accepted a connection at port 443.", "Check that the server runs and that its firewall lets port 443 through."),
    Protocol => ("protocol", "The check broke off because its report exceeded its limits.", CONTACT_IF_IT_STAYS),
    Crashed => ("crashed", "The check crashed on what the host sent.", CONTACT_IF_IT_STAYS),
    Memory => ("memory", "The check ran out of memory on what the host sent.", CONTACT_IF_IT_STAYS),
    Budget => ("budget", "It sent more bytes, or needed more connections, than a check may use.", "Check what /robots.txt and /.well-known/nodeinfo send."),
    Faulting => ("faulting", "Its checks keep failing on our side, while those of other hosts do not.", CONTACT_IF_IT_STAYS),
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn reasons_go_by_the_wires_words() {
        for found in FOUND {
            if let Found::Dead(reason) = found {
                let wire = serde_json::to_value(reason).unwrap();
                assert_eq!(wire, found_word(*found));
                assert_eq!(Found::parse("dead", wire.as_str()), Some(*found));
            }
            if let Found::Refused(Some(wall)) = found {
                assert_eq!(format!("wall_{}", wall.as_str()), found_word(*found));
                let reason = format!("wall {}, status 403", wall.as_str());
                assert_eq!(Found::parse("refused", Some(&reason)), Some(*found));
            }
        }
    }

    #[test]
    fn every_word_is_one_and_its_sentence_is_whole() {
        let found: BTreeSet<_> = FOUND.iter().map(|found| found_word(*found)).collect();
        assert_eq!(found.len(), FOUND.len());
        let sentences = FOUND
            .iter()
            .map(|found| of_found(*found))
            .chain(Why::ALL.iter().map(|why| of_why(*why)))
            .chain([UNKNOWN])
            .chain(Place::ALL.iter().map(|place| words(of_place(*place), "")));
        for Words { says, advice } in sentences {
            assert!(says.ends_with('.') && says.len() > 8, "{says}");
            assert!(advice.is_empty() || advice.ends_with('.'), "{advice}");
        }
    }

    #[test]
    fn every_reason_but_being_up_has_advice() {
        for why in Why::ALL {
            let Words { says, advice } = of_why(*why);
            assert_eq!(advice.is_empty(), *why == Why::Lives, "{says}");
        }
    }
}
