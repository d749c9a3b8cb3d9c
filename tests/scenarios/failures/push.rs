//! Kills the push service, or one of its nodes, at random under load, and stops nodes. No accepted
//! message to a client that was away is lost, and none at all if messages are stored first.
//!
//! The moments are drawn; `FEDICENSUS_CRASH_SEED` gives the same ones again, and
//! `FEDICENSUS_CRASH_KILLS` more of them.

mod full_disk;
mod model;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use rustix::process::Signal;
use serde_json::Value;
use tests::world::push::{Client, Node, ONE, Push, Sent, TWO, send};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::crashes::chance::Chance;
use super::crashes::{ENOUGH_WITHIN, number_from_environment};
use model::{Model, Totals, Try};

const KILLS: u32 = 200;

const USERS: usize = 6;

const CHANNELS: [&str; 2] = [
    "d9b74644-4f97-46aa-b8fa-9393985cd6cd",
    "deadbeef-0000-4000-8000-000000000001",
];

/// Tasks that send, each one message at a time.
const SENDERS: usize = 4;

const TOPICS: u64 = 5;

/// Longest life of the process under load.
const LIFE_MAX: Duration = Duration::from_millis(400);

/// Longest time for which one node is dead while the other goes on.
const DEATH_MAX: Duration = Duration::from_millis(50);

const STANDSTILL: Duration = Duration::from_secs(10);

/// Longest time for which a client keeps a connection, or has none.
const TURN_MAX: Duration = Duration::from_millis(120);

/// Messages that may wait for one user: the service takes 100 for a channel.
const WAITING_MAX: usize = 60;

/// A client that hears nothing for so long acknowledges what it has, or not.
const IDLE: Duration = Duration::from_millis(4);

/// Seconds that most messages may wait: longer than the test takes.
const LONG_S: u32 = 86_400;

#[derive(Debug, Clone)]
struct User {
    number: usize,
    uaid: String,
    endpoints: Vec<String>,
}

const ORDINARY: &str = "";
const STORED_FIRST: &str = "store-first";

#[tokio::test(flavor = "multi_thread")] // S29
async fn no_kill_loses_a_message_to_a_client_that_was_away() -> anyhow::Result<()> {
    story(ORDINARY, ONE).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")] // S29
async fn no_kill_loses_a_message_that_is_stored_first() -> anyhow::Result<()> {
    let totals = story(STORED_FIRST, ONE).await?;
    ensure!(totals.lost_in_memory == 0, "{totals}");
    Ok(())
}

/// All messages are accepted while the node that takes them lives.
#[tokio::test(flavor = "multi_thread")] // S29
async fn no_killed_node_loses_a_message_to_an_absent_client() -> anyhow::Result<()> {
    story(ORDINARY, TWO).await?;
    Ok(())
}

async fn story(delivery: &'static str, nodes: &'static [Node]) -> anyhow::Result<Totals> {
    let kills = number_from_environment("FEDICENSUS_CRASH_KILLS").unwrap_or(KILLS);
    let mut chance = Chance::new();
    let seed = chance.seed;
    let folder = tempfile::tempdir()?;
    let model = Model::default();
    let mut push = Push::start(folder.path(), delivery, nodes).await?;
    let users = users(push.socket()).await?;
    let least = usize::try_from(kills)?;
    let mut number = 0;
    let mut until = None;
    // A busy machine does little in a life, and lives in which nothing happens prove nothing.
    while number < kills || !model.has_more_than(least) {
        number += 1;
        if number > kills {
            let until =
                *until.get_or_insert_with(|| Instant::now() + tests::patient(ENOUGH_WITHIN));
            ensure!(Instant::now() < until, "hardly anything happens here");
        }
        let victim = below(&mut chance, nodes.len());
        let must_accept = victim + 1 < nodes.len();
        // Half of the clients stay away.
        let away: Vec<bool> = users.iter().map(|_| chance.one_in(2)).collect();
        let mut load = Load::default();
        for (user, is_away) in users.iter().zip(&away) {
            if !is_away {
                let socket = push.socket().to_owned();
                let (user, model) = (user.clone(), model.clone());
                load.add(comes_and_goes(socket, user, model, chance.branch()));
            }
        }
        load.add_senders(&push, &users, &away, &model, must_accept, &mut chance);
        tokio::time::sleep(chance.moment(LIFE_MAX)).await;
        push.kill(victim)?;
        if must_accept {
            tokio::time::sleep(chance.moment(DEATH_MAX)).await;
        }
        let ended = timeout(tests::PATIENCE, load.ends()).await?;
        ended.with_context(|| format!("kill {number} of seed {seed}"))?;
        push.restart(victim).await?;
    }
    for user in &users {
        if let Err(error) = drain(push.socket(), user, &model).await {
            model.wrong(format!("user {} can't read: {error}", user.number));
        }
    }
    let (totals, wrong) = model.settle(delivery == STORED_FIRST);
    eprintln!("{number} kills, {delivery:?}, {nodes:?}: {totals}");
    ensure!(wrong.is_empty(), "seed {seed}: {wrong:#?}");
    Ok(totals)
}

/// The machine may stop a process, and goes on with it later.
#[tokio::test(flavor = "multi_thread")] // S29
async fn a_stopped_node_loses_neither_clients_nor_messages() -> anyhow::Result<()> {
    tokio::try_join!(standstill(0), standstill(1))?;
    Ok(())
}

async fn standstill(number: usize) -> anyhow::Result<()> {
    let mut chance = Chance::new();
    let folder = tempfile::tempdir()?;
    let model = Model::default();
    let push = Push::start(folder.path(), "", TWO).await?;
    let users = users(push.socket()).await?;
    let mut clients = Load::default();
    for user in &users {
        let client = Client::connect(push.socket(), Some(&user.uaid)).await?;
        clients.add(keeps_reading(
            client,
            user.number,
            model.clone(),
            chance.branch(),
        ));
    }
    let mut senders = Load::default();
    let nobody = vec![false; users.len()];
    senders.add_senders(&push, &users, &nobody, &model, true, &mut chance);
    tokio::time::sleep(LIFE_MAX).await;
    push.signal(number, Signal::STOP)?;
    tokio::time::sleep(STANDSTILL).await;
    push.signal(number, Signal::CONT)?;
    tokio::time::sleep(LIFE_MAX).await;
    timeout(tests::PATIENCE, senders.ends()).await??;
    let all_arrive = async {
        while !model.lost().is_empty() {
            tokio::time::sleep(IDLE).await;
        }
    };
    let arrived = timeout(tests::PATIENCE, all_arrive).await;
    clients.ends().await?;
    let (totals, wrong) = model.settle(true);
    eprintln!("{:?} stood still: {totals}", TWO[number]);
    // Those that were on their way when the process was stopped.
    let is_again = |what: &String| what.contains(" came again ");
    let (again, wrong): (Vec<_>, Vec<_>) = wrong.into_iter().partition(is_again);
    ensure!(arrived.is_ok() && wrong.is_empty(), "{wrong:#?}");
    ensure!(again.len() + totals.redelivered <= SENDERS, "{again:#?}");
    Ok(())
}

async fn users(socket: &Path) -> anyhow::Result<Vec<User>> {
    let mut users = Vec::new();
    for number in 0..USERS {
        let mut client = Client::connect(socket, None).await?;
        let mut endpoints = Vec::new();
        for channel in CHANNELS {
            endpoints.push(client.register(channel).await?);
        }
        let uaid = client.uaid().to_owned();
        users.push(User {
            number,
            uaid,
            endpoints,
        });
    }
    Ok(users)
}

/// Everything that goes on while the processes live.
#[derive(Default)]
struct Load {
    tasks: JoinSet<Option<()>>,
    is_over: CancellationToken,
}

impl Load {
    fn add(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        let is_over = self.is_over.clone();
        self.tasks.spawn(is_over.run_until_cancelled_owned(task));
    }

    fn add_senders(
        &mut self,
        push: &Push,
        users: &[User],
        away: &[bool],
        model: &Model,
        must_accept: bool,
        chance: &mut Chance,
    ) {
        for _ in 0..SENDERS {
            let socket = push.endpoint_socket().to_owned();
            let (users, away) = (users.to_vec(), away.to_vec());
            let (model, chance) = (model.clone(), chance.branch());
            self.add(sends(socket, users, away, model, must_accept, chance));
        }
    }

    async fn ends(mut self) -> anyhow::Result<()> {
        self.is_over.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            ended?;
        }
        Ok(())
    }
}

fn below(chance: &mut Chance, most: usize) -> usize {
    let most = u64::try_from(most).unwrap_or(u64::MAX);
    usize::try_from(chance.below(most)).unwrap_or(0)
}

/// Sends until the process is gone, which is an error if it `must_accept`.
async fn sends(
    socket: PathBuf,
    users: Vec<User>,
    away: Vec<bool>,
    model: Model,
    must_accept: bool,
    mut chance: Chance,
) {
    loop {
        let user = below(&mut chance, users.len());
        if model.waiting(user) > WAITING_MAX {
            tokio::time::sleep(IDLE).await;
            continue;
        }
        let channel = below(&mut chance, CHANNELS.len());
        let ttl_s = if chance.one_in(8) { 2 } else { LONG_S };
        let topic = chance
            .one_in(3)
            .then(|| format!("topic-{}", chance.below(TOPICS)));
        let body = vec![7; below(&mut chance, 300)];
        let number = model.begins(Try {
            user,
            channel,
            topic: topic.clone(),
            ttl: Duration::from_secs(ttl_s.into()),
            began: Instant::now(),
            is_away: away[user],
        });
        let sent = Sent {
            ttl_s,
            topic: topic.as_deref(),
            body: &body,
        };
        match send(&socket, &users[user].endpoints[channel], sent).await {
            Ok(Some(version)) => model.promised(number, version),
            answer if must_accept => model.wrong(format!("not accepted: {answer:?}")),
            // Full.
            Ok(None) => {}
            Err(_killed) => return,
        }
    }
}

/// Connects, reads, acknowledges some, and leaves, until the process is gone.
async fn comes_and_goes(socket: PathBuf, user: User, model: Model, mut chance: Chance) {
    loop {
        tokio::time::sleep(chance.moment(TURN_MAX)).await;
        let connected = Instant::now();
        // The former connection may not have ended yet: it is tried again.
        let Ok(mut client) = Client::connect(&socket, Some(&user.uaid)).await else {
            tokio::task::yield_now().await;
            continue;
        };
        if client.uaid() != user.uaid {
            model.wrong(format!("user {} is not known any more", user.number));
            return;
        }
        let turn = Turn::new(user.number, &model, connected);
        let stay = chance.moment(TURN_MAX);
        // Its end, whether by a kill or by the time, is no failure.
        timeout(stay, turn.talk(&mut client, &mut chance))
            .await
            .ok();
    }
}

async fn keeps_reading(mut client: Client, user: usize, model: Model, mut chance: Chance) {
    let turn = Turn::new(user, &model, Instant::now());
    let ended = turn.talk(&mut client, &mut chance).await;
    model.wrong(format!("the connection of user {user} ended: {ended:?}"));
}

struct Turn<'m> {
    user: usize,
    connected: Instant,
    model: &'m Model,
    held: Vec<Value>,
}

impl<'m> Turn<'m> {
    fn new(user: usize, model: &'m Model, connected: Instant) -> Self {
        let held = Vec::new();
        Self {
            user,
            connected,
            model,
            held,
        }
    }

    async fn talk(mut self, client: &mut Client, chance: &mut Chance) -> anyhow::Result<()> {
        loop {
            let Ok(message) = timeout(IDLE, client.next()).await else {
                // Also with nothing to acknowledge: senders wait while messages seem to wait that
                // were lost in memory or have expired.
                if chance.one_in(2) {
                    let all = std::mem::take(&mut self.held);
                    self.acknowledge(client, all).await?;
                }
                continue;
            };
            self.takes(message?);
            if chance.one_in(6) {
                // The last ones, so that earlier ones of the batch come again.
                let some = self.held.split_off(self.held.len() / 2);
                self.acknowledge(client, some).await?;
            }
        }
    }

    fn takes(&mut self, message: Value) {
        let version = version(&message);
        self.model.sees(self.user, &version, self.connected);
        self.held.push(message);
    }

    /// Acknowledges messages, and waits until the service knows.
    async fn acknowledge(
        &mut self,
        client: &mut Client,
        messages: Vec<Value>,
    ) -> anyhow::Result<()> {
        if !messages.is_empty() {
            client.acknowledge(&messages).await?;
        }
        client.ask_for_mark().await?;
        loop {
            let message = client.next().await?;
            if message["messageType"] == "broadcast" {
                break;
            }
            self.takes(message);
        }
        // Whatever came before the mark may have come before the acknowledgement.
        self.model.done(messages.iter().map(version));
        if self.held.is_empty() {
            self.model.drained(self.user);
        }
        Ok(())
    }
}

async fn drain(socket: &Path, user: &User, model: &Model) -> anyhow::Result<()> {
    let connected = Instant::now();
    let mut client = Client::connect(socket, Some(&user.uaid)).await?;
    ensure!(client.uaid() == user.uaid, "user {} is gone", user.number);
    loop {
        client.ask_for_mark().await?;
        let mut messages = Vec::new();
        loop {
            let message = timeout(tests::PATIENCE, client.next()).await??;
            if message["messageType"] == "broadcast" {
                break;
            }
            model.sees(user.number, &version(&message), connected);
            messages.push(message);
        }
        if messages.is_empty() {
            return Ok(());
        }
        client.acknowledge(&messages).await?;
    }
}

fn version(message: &Value) -> String {
    message["version"].as_str().unwrap_or_default().to_owned()
}
