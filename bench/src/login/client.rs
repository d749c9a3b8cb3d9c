//! A client that sends the login form like a browser.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpSocket, UnixStream};

/// How the console is reached.
#[derive(Debug, Clone)]
pub(crate) enum Way {
    /// Over its own socket, on which the client states its address.
    Socket(PathBuf),
    /// Through the web server at this port, from a loopback address.
    Web(u16),
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) text: String,
}

/// Cookies as in a header.
pub(crate) type Cookies = Vec<(String, String)>;

impl Way {
    pub(crate) fn socket(path: &Path) -> Self {
        Self::Socket(path.to_owned())
    }

    async fn send(&self, from: Ipv4Addr, request: &str) -> Result<String> {
        match self {
            Self::Socket(path) => {
                let request = request.replacen("\r\n", &format!("\r\nx-real-ip: {from}\r\n"), 1);
                talk(UnixStream::connect(path).await?, &request).await
            }
            Self::Web(port) => {
                let socket = TcpSocket::new_v4()?;
                socket.bind(SocketAddr::from((from, 0)))?;
                let to = SocketAddr::from((Ipv4Addr::LOCALHOST, *port));
                talk(socket.connect(to).await?, request).await
            }
        }
    }

    pub(crate) async fn get(&self, from: Ipv4Addr, path: &str, cookies: &Cookies) -> Result<Reply> {
        let cookies = header(cookies);
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nuser-agent: bench\r\nconnection: close\r\n{cookies}\r\n"
        );
        Ok(reply(self.send(from, &request).await?))
    }

    pub(crate) async fn post(
        &self,
        from: Ipv4Addr,
        path: &str,
        cookies: &Cookies,
        body: &str,
    ) -> Result<Reply> {
        let (cookies, length) = (header(cookies), body.len());
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nuser-agent: bench\r\nconnection: close\r\n{cookies}content-type: application/x-www-form-urlencoded\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        Ok(reply(self.send(from, &request).await?))
    }

    /// A login form: its cookie and its token. It can be sent any number of times.
    pub(crate) async fn login_form(&self, from: Ipv4Addr) -> Result<(Cookies, String)> {
        let page = self.get(from, "/login", &Cookies::new()).await?;
        let (_, rest) = page
            .text
            .split_once("name=\"form\" value=\"")
            .with_context(|| format!("no form: {}", page.text))?;
        let token = rest.split('"').next().unwrap_or_default().to_owned();
        Ok((cookies_of(&page), token))
    }
}

/// The cookies that an answer sets.
pub(crate) fn cookies_of(reply: &Reply) -> Cookies {
    let lines = reply.text.lines().filter_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("set-cookie").then_some(value)
    });
    lines
        .filter_map(|line| line.split(';').next()?.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn header(cookies: &Cookies) -> String {
    if cookies.is_empty() {
        return String::new();
    }
    let pairs: Vec<_> = cookies
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    format!("cookie: {}\r\n", pairs.join("; "))
}

async fn talk(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &str) -> Result<String> {
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn reply(text: String) -> Reply {
    let status = text.split(' ').nth(1).and_then(|word| word.parse().ok());
    Reply {
        status: status.unwrap_or_default(),
        text,
    }
}
