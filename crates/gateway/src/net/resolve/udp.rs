//! Asks DNS questions over UDP: each on a socket of its own, which stays open until the answer.
//!
//! The library's client sends three times within a second and then only waits. Its caller gave up
//! after 4 s, when a forwarder such as Docker's turns to the next of its resolvers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::time::Duration;

use futures_util::stream::{Stream, once};
use hickory_resolver::config::{ConnectionConfig, ProtocolConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::udp::MAX_RECEIVE_BUFFER_SIZE;
use hickory_resolver::net::xfer::{DnsExchange, DnsHandle};
use hickory_resolver::proto::op::{DnsRequest, DnsResponse, Message, ResponseCode};
use hickory_resolver::{ConnectionProvider, PoolContext};
use tokio::net::UdpSocket;
use tokio::time::timeout;

/// Time after which a question is sent again; each further pause is twice as long. A lost datagram
/// costs a second, and a question without an answer is sent four times in 15 s.
const SEND_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Connects to resolvers.
#[derive(Clone, Default)]
pub(super) struct Connections(TokioRuntimeProvider);

/// A connection to a resolver.
#[derive(Clone)]
pub(super) enum Connection {
    Udp(SocketAddr),
    Tcp(DnsExchange<TokioRuntimeProvider>),
}

impl ConnectionProvider for Connections {
    type Conn = Connection;
    type FutureConn = Pin<Box<dyn Future<Output = Result<Connection, NetError>> + Send>>;
    type RuntimeProvider = TokioRuntimeProvider;

    fn new_connection(
        &self,
        ip: IpAddr,
        config: &ConnectionConfig,
        pool: &PoolContext,
    ) -> Result<Self::FutureConn, NetError> {
        if matches!(config.protocol, ProtocolConfig::Udp) {
            let udp = Connection::Udp(SocketAddr::new(ip, config.port));
            return Ok(Box::pin(async { Ok(udp) }));
        }
        let tcp = self.0.new_connection(ip, config, pool)?;
        Ok(Box::pin(async { Ok(Connection::Tcp(tcp.await?)) }))
    }

    fn runtime_provider(&self) -> &TokioRuntimeProvider {
        &self.0
    }
}

impl DnsHandle for Connection {
    type Response = Pin<Box<dyn Stream<Item = Result<DnsResponse, NetError>> + Send>>;
    type Runtime = TokioRuntimeProvider;

    fn send(&self, request: DnsRequest) -> Self::Response {
        match self {
            Self::Tcp(tcp) => Box::pin(tcp.send(request)),
            Self::Udp(server) => Box::pin(once(ask(*server, request.into_parts().0))),
        }
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
