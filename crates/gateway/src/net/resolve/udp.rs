//! Asks DNS questions: each on a UDP socket of its own, which stays open until the answer.
//!
//! The library's client sends three times within a second and then only waits. Its caller gave up
//! after 4 s, when a forwarder such as Docker's turns to the next of its resolvers.

use std::future::{Ready, ready};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::time::Duration;

use futures_util::stream::{Stream, once};
use hickory_resolver::config::ConnectionConfig;
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::udp::MAX_RECEIVE_BUFFER_SIZE;
use hickory_resolver::net::xfer::DnsHandle;
use hickory_resolver::proto::op::{DnsRequest, DnsResponse, Message, ResponseCode};
use hickory_resolver::{ConnectionProvider, PoolContext};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

/// Time after which a question is sent again; each further pause is twice as long. A lost datagram
/// costs a second, and a question without an answer is sent four times in 15 s.
const SEND_AGAIN_AFTER: Duration = Duration::from_secs(1);

#[derive(Clone, Default)]
pub(super) struct Connections(TokioRuntimeProvider);

/// A resolver's address. Each question has a connection of its own.
#[derive(Clone)]
pub(super) struct Connection(SocketAddr);

impl ConnectionProvider for Connections {
    type Conn = Connection;
    type FutureConn = Ready<Result<Connection, NetError>>;
    type RuntimeProvider = TokioRuntimeProvider;

    fn new_connection(
        &self,
        ip: IpAddr,
        config: &ConnectionConfig,
        _pool: &PoolContext,
    ) -> Result<Self::FutureConn, NetError> {
        Ok(ready(Ok(Connection(SocketAddr::new(ip, config.port)))))
    }

    fn runtime_provider(&self) -> &TokioRuntimeProvider {
        &self.0
    }
}

impl DnsHandle for Connection {
    type Response = Pin<Box<dyn Stream<Item = Result<DnsResponse, NetError>> + Send>>;
    type Runtime = TokioRuntimeProvider;

    fn send(&self, request: DnsRequest) -> Self::Response {
        Box::pin(once(answer(self.0, request.into_parts().0)))
    }
}

/// The server's answer, over TCP if it is too long for UDP. A rejection is an error between us and
/// the server, so that the other resolvers' answers still count.
async fn answer(server: SocketAddr, question: Message) -> Result<DnsResponse, NetError> {
    let mut answer = ask(server, question.clone()).await?;
    if answer.truncation {
        answer = ask_over_tcp(server, &question).await?;
    }
    let code = answer.response_code;
    if rejects(&answer) || code == ResponseCode::Refused {
        return Err(io::Error::other(code.to_str()).into());
    }
    Ok(answer)
}

/// Messages over TCP have their length in front (RFC 1035 §4.2.2).
async fn ask_over_tcp(server: SocketAddr, question: &Message) -> Result<DnsResponse, NetError> {
    let mut stream = TcpStream::connect(server).await?;
    let message = question.to_vec()?;
    let length = u16::try_from(message.len()).map_err(io::Error::other)?;
    stream.write_all(&length.to_be_bytes()).await?;
    stream.write_all(&message).await?;
    let mut answer = vec![0; usize::from(stream.read_u16().await?)];
    stream.read_exact(&mut answer).await?;
    let answer = DnsResponse::from_buffer(answer)?;
    match is_about(question, &answer) {
        true => Ok(answer),
        false => Err(io::Error::from(io::ErrorKind::InvalidData).into()),
    }
}

/// Asks until there is an answer, or the caller's time is over; without an OPT record once the
/// server has rejected that.
async fn ask(server: SocketAddr, mut question: Message) -> Result<DnsResponse, NetError> {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).await?;
    let mut pause = SEND_AGAIN_AFTER;
    loop {
        socket.send_to(&question.to_vec()?, server).await?;
        let receive = async {
            loop {
                let mut datagram = Vec::with_capacity(MAX_RECEIVE_BUFFER_SIZE);
                let (_, from) = socket.recv_buf_from(&mut datagram).await?;
                if from == server
                    && let Ok(answer) = DnsResponse::from_buffer(datagram)
                    && is_about(&question, &answer)
                {
                    return Ok(answer);
                }
            }
        };
        match timeout(pause, receive).await {
            Ok(Ok(answer)) if rejects(&answer) && question.edns.take().is_some() => {}
            Ok(answer) => return answer,
            Err(_elapsed) => pause = pause.saturating_mul(2),
        }
    }
}

/// Whether the answer belongs to the question. Some old servers reject EDNS with a header alone.
fn is_about(question: &Message, answer: &Message) -> bool {
    let is_header = answer.queries.is_empty() && rejects(answer);
    answer.id == question.id && (is_header || answer.queries == question.queries)
}

/// Whether the server may not understand EDNS. REFUSED is not among the codes: it may come from a
/// limit, which a second question would use up.
fn rejects(answer: &Message) -> bool {
    let code = answer.response_code;
    matches!(code, ResponseCode::FormErr | ResponseCode::NotImp)
}

#[cfg(test)]
mod tests {
    use hickory_resolver::proto::op::OpCode;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_truncated_answer_is_fetched_over_tcp() {
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = tcp.local_addr().unwrap();
        let udp = UdpSocket::bind(server).await.unwrap();
        tokio::spawn(async move {
            let mut question = [0; 512];
            let (_, from) = udp.recv_from(&mut question).await.unwrap();
            let mut short = Message::response(7, OpCode::Query);
            short.metadata.truncation = true;
            udp.send_to(&short.to_vec().unwrap(), from).await.unwrap();
            let (mut stream, _) = tcp.accept().await.unwrap();
            let long = Message::response(7, OpCode::Query).to_vec().unwrap();
            stream.write_u16(long.len() as u16).await.unwrap();
            stream.write_all(&long).await.unwrap();
        });
        let mut question = Message::response(7, OpCode::Query);
        question.metadata.message_type = hickory_resolver::proto::op::MessageType::Query;
        assert!(!answer(server, question).await.unwrap().truncation);
    }
}
