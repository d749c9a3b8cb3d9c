//! Notifications at another push service, over real parts: the push service of this test hands
//! messages to the daemon's socket, and a container posts them to the lab's.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::ensure;
use lab::personas::lists::{PUSH_HOST, PUSH_PATHS};
use lab::request_log;
use push::endpoint::fernet::Keys;
use push::notify::seal::Sender;
use push::notify::{Filter, Subscription};
use push::remote::Remote;
use push::remote::wire::{Answer, Daemon, Request};
use push::serve::{Bounds, Census, Service, Settings, tell};
use push::session::Rules;
use push::storage::sqlite::{Limits, Sqlite};
use tests::{Options, PATIENCE, Role, World};
use tokio_util::sync::{CancellationToken, DropGuard};

const HOSTS: [&str; 3] = [
    "by-misskey.lab-shapes.test",
    "by-mbin.lab-shapes.test",
    "by-piefed.lab-shapes.test",
];

const SERVICES: &str = "push.lab.test";

/// The base point of P-256, which is somebody's public key as well.
const PUBLIC_KEY: &str = "046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c2964fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5";

/// A push service over the world's published changes, as another process would run it.
struct Push {
    storage: Arc<Sqlite>,
    _end: DropGuard,
}

impl Push {
    fn start(world: &World) -> anyhow::Result<Self> {
        let storage = Arc::new(Sqlite::open(&world.path("push.db"), Limits::ORDINARY)?);
        let key = storage.secret("sender", &Sender::new_key()?)?;
        let census = Census {
            sender: Sender::new(&key, "mailto:census@lab.test".to_owned())?,
            changes: world.path("public/current/data/changes"),
            remote: Remote {
                services: vec![protocol::Host::parse(SERVICES)?].into(),
                daemon: daemon(world),
            },
        };
        let settings = Settings {
            origin: "https://own.lab.test".to_owned(),
            nodes: world.path("run"),
            node: "here".to_owned(),
            keys: Keys::parse(&Keys::text_of(&[1; 32]))?,
            registration_keys: Vec::new(),
            rules: Rules::ORDINARY,
            bounds: Bounds::within(768 * 1024 * 1024),
        };
        #[expect(clippy::disallowed_methods, reason = "this is the process's clock")]
        let now = || {
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            i64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
        };
        let service = Service::new(settings, storage.clone(), Some(census), Arc::new(now))?;
        let end = CancellationToken::new();
        let every = Duration::from_millis(200);
        tokio::spawn(tell(Arc::new(service), every, end.clone()));
        Ok(Self {
            storage,
            _end: end.drop_guard(),
        })
    }

    fn endpoints(&self) -> anyhow::Result<Vec<String>> {
        let all = self.storage.subscriptions_after(0)?;
        Ok(all.into_iter().map(|(_, one)| one.endpoint).collect())
    }
}

fn daemon(world: &World) -> Daemon {
    Daemon::new(world.path("run/push/push.sock"))
}

fn endpoint(path: &str) -> String {
    format!("https://{PUSH_HOST}{path}")
}

/// How often each path of the push service was asked for.
fn asked(world: &World) -> anyhow::Result<BTreeMap<String, usize>> {
    let mut asked = BTreeMap::new();
    for entry in request_log::entries(&world.path("lab/requests.ndjson"))? {
        if entry.host == PUSH_HOST && !entry.method.is_empty() {
            ensure!(entry.agent.contains("Fedicensus/"), "{entry:?}");
            *asked
                .entry(format!("{} {}", entry.method, entry.path))
                .or_default() += 1;
        }
    }
    Ok(asked)
}

async fn publish_with(world: &World, host: &str) -> anyhow::Result<()> {
    let added = world.command(&["add", host])?;
    ensure!(added.status.success(), "{added:?}");
    until_alive(world, host).await?;
    let dumped = world.command(&["dump", "--force"])?;
    ensure!(dumped.status.success(), "{dumped:?}");
    ensure!(world.nodes()?.iter().any(|name| name == host), "{host}");
    Ok(())
}

async fn until_alive(world: &World, host: &str) -> anyhow::Result<()> {
    world
        .until("the host responds", PATIENCE, |world| {
            let stored = world.host(host)?;
            Ok(stored.is_some_and(|stored| stored.record.last_alive.is_some()))
        })
        .await
}

async fn until_asked(world: &World, counts: [usize; 3]) -> anyhow::Result<()> {
    let expect: BTreeMap<String, usize> = PUSH_PATHS
        .iter()
        .map(|path| format!("POST {path}"))
        .zip(counts)
        .collect();
    world
        .until("all messages are posted", PATIENCE, |world| {
            let asked = asked(world)?;
            ensure!(asked == expect, "{asked:?}");
            Ok(true)
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_to_another_push_service_leave_through_a_container() -> anyhow::Result<()> {
    let mut options = Options::new(&[HOSTS[0]]);
    options.settings.push(("push_socket", "true".to_owned()));
    options
        .settings
        .push(("push_services", SERVICES.to_owned()));
    let world = World::start(options).await?;
    until_alive(&world, HOSTS[0]).await?;
    let dumped = world.command(&["dump", "--force"])?;
    ensure!(dumped.status.success(), "{dumped:?}");
    publish_with(&world, HOSTS[1]).await?;
    let push = Push::start(&world)?;
    for path in PUSH_PATHS {
        let subscription = Subscription {
            endpoint: endpoint(path),
            public_key: hex::decode(PUBLIC_KEY)?,
            secret: vec![1; 16],
            filter: Filter::All,
        };
        push.storage.subscribe(&subscription, None)?;
    }
    world
        .until("the list before is known", PATIENCE, |_| {
            Ok(push.storage.last_told()?.is_some())
        })
        .await?;

    publish_with(&world, HOSTS[2]).await?;
    // The third endpoint is busy once, and takes its message after the pause.
    until_asked(&world, [1, 1, 2]).await?;
    world
        .until("the subscription that is gone has ended", PATIENCE, |_| {
            Ok(push.endpoints()? == [endpoint(PUSH_PATHS[0]), endpoint(PUSH_PATHS[2])])
        })
        .await?;
    // Nothing of it is in the census.
    ensure!(world.host(PUSH_HOST)?.is_none(), "it became a host");

    // Whatever a push process that was taken over asks for: other hosts are not asked.
    let stranger = Request::Deliver {
        host: protocol::Host::parse("lists.lab.test")?,
        messages: serde_json::from_value(serde_json::json!([{
            "path": "/pods.json", "ttl_s": 1, "topic": "t", "authorization": "a", "body": "aGk=",
        }]))?,
    };
    assert_eq!(
        daemon(&world).ask(&stranger).await?,
        Answer::NotAPushService {}
    );
    let entries = request_log::entries(&world.path("lab/requests.ndjson"))?;
    assert!(entries.iter().all(|entry| entry.host != "lists.lab.test"));
    let log = world.log(Role::Run);
    ensure!(!log.contains("/push/"), "an endpoint is in the log");
    Ok(())
}
