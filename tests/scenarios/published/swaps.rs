//! Sets that are swapped while visitors read them through nginx: no download breaks, hashes tell
//! one set from another, and unchanged files keep their `ETag`.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, ensure};
use dump::{DumpError, ListedRow, ListedState, Moment};
use publish::{Cancel, Disk, Tree};
use sha2::{Digest as _, Sha256};
use socket2::{Domain, Socket, Type};
use tests::Web;

const SWAPS: usize = 10;
const READERS: usize = 3;

/// Rows of the first set; each later one has one less. The rows take more than what fits into the
/// sockets between nginx and a client.
const ROWS: usize = 2000;

/// Segments and receive buffer of a client that waits: on the loopback's own segments, the sockets
/// would hold the whole file.
const SEGMENT_BYTES: u32 = 1400;
const BUFFER_BYTES: usize = 8192;

fn host(number: usize) -> String {
    format!("h{number:05}.example")
}

fn swap(public: &Path, first: usize) -> anyhow::Result<()> {
    let tree = Tree::begin(Disk::SYSTEM, public, &Cancel::default())?;
    let moment = |number: usize| Moment::from_milliseconds(number as i64 * 1000);
    let draft = dump::write(&tree, moment(first), |row| {
        (first..ROWS).try_for_each(|number| {
            row(&ListedRow {
                host: host(number),
                state: ListedState::Alive,
                instance: kit::software("mastodon", "4.4.0"),
                first_seen: moment(number),
                last_alive: moment(number),
            })
        })
    });
    draft.map_err(|error: DumpError| error)?.seal()?;
    Ok(tree.publish()?)
}

struct Answer {
    head: String,
    body: Vec<u8>,
}

impl Answer {
    /// Requests a file, from one of many addresses, as nginx slows one visitor down.
    fn to(web: &Web, path: &str, visit: usize) -> anyhow::Result<Self> {
        let mut stream = TcpStream::connect(web.address().trim_start_matches("http://"))?;
        write!(
            stream,
            "GET {path} HTTP/1.0\r\nX-Forwarded-For: 192.0.{}.{}\r\n\r\n",
            visit / 200 % 200,
            visit % 200
        )?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes)?;
        Self::parse(&bytes).with_context(|| path.to_owned())
    }

    fn parse(bytes: &[u8]) -> anyhow::Result<Self> {
        let end = bytes.windows(4).position(|end| end == b"\r\n\r\n");
        let (head, body) = bytes.split_at(end.context("no head")? + 4);
        let head = String::from_utf8_lossy(head).to_ascii_lowercase();
        ensure!(head.starts_with("http/1.1 200 "), "{head}");
        let length = format!("content-length: {}\r\n", body.len());
        ensure!(head.contains(&length), "{} bytes of {head}", body.len());
        let body = body.to_vec();
        Ok(Self { head, body })
    }

    fn etag(&self) -> Option<&str> {
        self.head.lines().find(|line| line.starts_with("etag: "))
    }
}

/// A download that is under way, of a file that it keeps to compare.
struct Download {
    stream: TcpStream,
    begun: Vec<u8>,
    file: Vec<u8>,
}

impl Download {
    /// Requests the rows, and reads the answer's first byte only.
    fn begin(web: &Web, public: &Path) -> anyhow::Result<Self> {
        let file = std::fs::read(publish::current(public).join("data/instances.ndjson"))?;
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.set_tcp_mss(SEGMENT_BYTES)?;
        socket.set_recv_buffer_size(BUFFER_BYTES)?;
        let address: SocketAddr = web.address().trim_start_matches("http://").parse()?;
        socket.connect(&address.into())?;
        let mut stream = TcpStream::from(socket);
        stream.write_all(b"GET /data/instances.ndjson HTTP/1.0\r\n\r\n")?;
        let mut begun = vec![0];
        stream.read_exact(&mut begun)?;
        Ok(Self {
            stream,
            begun,
            file,
        })
    }

    fn ends_well(mut self) -> anyhow::Result<()> {
        self.stream.read_to_end(&mut self.begun)?;
        let body = Answer::parse(&self.begun)?.body;
        ensure!(
            body == self.file,
            "another file than the one that was begun"
        );
        Ok(())
    }
}

/// Reads all files of a set, and returns whether they are those of its index. If not, it was
/// replaced meanwhile.
fn is_one_set(web: &Web, visits: &mut usize) -> anyhow::Result<bool> {
    let mut get = |path: &str| {
        *visits += 1;
        Answer::to(web, path, *visits)
    };
    let index = get("/data/index.json")?.body;
    let told: serde_json::Value = serde_json::from_slice(&index)?;
    let mut is_one = true;
    for file in told["files"].as_array().context("files")? {
        let body = get(&format!(
            "/data/{}",
            file["name"].as_str().context("a name")?
        ))?
        .body;
        is_one &= hex::encode(Sha256::digest(body)) == file["sha256"];
    }
    let is_still_there = get("/data/index.json")?.body == index;
    ensure!(is_one || !is_still_there, "files of two sets: {told}");
    Ok(is_one)
}

/// The `ETag` of each file that stays the same, and of the list.
fn etags(web: &Web) -> anyhow::Result<(BTreeMap<String, String>, String)> {
    let etag = |path: &str| {
        let answer = Answer::to(web, path, 0)?;
        Ok::<_, anyhow::Error>(answer.etag().context("no ETag")?.to_owned())
    };
    let mut same = BTreeMap::new();
    for name in ["change", "index", "instance", "nodes", "software"] {
        let path = format!("/data/schema/{name}.json");
        same.insert(path.clone(), etag(&path)?);
    }
    Ok((same, etag("/nodes.json")?))
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_swaps_break_no_download_and_keep_etags() -> anyhow::Result<()> {
    if !tests::are_there(&["nginx"]) {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let public = folder.path().join("public");
    std::fs::create_dir(&public)?;
    std::fs::set_permissions(
        folder.path(),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )?;
    let believed = "set_real_ip_from 127.0.0.1;\nreal_ip_header X-Forwarded-For;\n";
    std::fs::write(folder.path().join("clients.conf"), believed)?;
    swap(&public, 0)?;
    let web = Web::start(folder.path(), &public).await?;
    let (same, mut list) = etags(&web)?;
    let is_over = AtomicBool::new(false);
    let mut sets = std::thread::scope(|scope| -> anyhow::Result<usize> {
        let read = |reader: usize| {
            let (web, is_over) = (&web, &is_over);
            scope.spawn(move || -> anyhow::Result<usize> {
                let (mut sets, mut visits) = (0, reader * 10_000);
                while !is_over.load(Ordering::Relaxed) {
                    sets += usize::from(is_one_set(web, &mut visits)?);
                }
                Ok(sets)
            })
        };
        let readers: Vec<_> = (0..READERS).map(read).collect();
        let swapped = (1..=SWAPS).try_for_each(|first| {
            let download = Download::begin(&web, &public)?;
            swap(&public, first)?;
            download.ends_well()?;
            let (now, new) = etags(&web)?;
            ensure!(now == same && new != list, "{now:?} {same:?} {new} {list}");
            list = new;
            let tree = publish::current(&public);
            for file in ["nodes.json", "data/instances.ndjson", "data/instances.csv"] {
                let text = std::fs::read_to_string(tree.join(file))?;
                ensure!(!text.contains(&host(first - 1)), "{file}");
            }
            Ok(())
        });
        is_over.store(true, Ordering::Relaxed);
        let read: anyhow::Result<usize> = readers
            .into_iter()
            .map(|reader| reader.join().expect("no panic"))
            .sum();
        swapped.and(read)
    })?;
    sets += usize::from(is_one_set(&web, &mut 0)?);
    ensure!(sets > 1, "{sets}");
    Ok(())
}
