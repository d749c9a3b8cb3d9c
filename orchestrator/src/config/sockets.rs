//! Paths of the sockets between the parts. All derive from `run_dir`.

use std::path::PathBuf;

use super::value::{boolean, list, one_of, path};
use super::{ConfigError, Values};

/// A socket that is opened only if the operator wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Optional {
    Texts,
    Intake,
    Metrics,
}

/// Where the parts listen. Each socket has a separate folder, which is a volume that only its two
/// sides share.
#[derive(Debug, Clone)]
pub(super) struct Sockets {
    run_dir: PathBuf,
    opened: Vec<Optional>,
    /// Separate settings, so that the files that enable the console, the push service and the
    /// intake can be combined.
    opens_console: bool,
    opens_push: bool,
}

impl Sockets {
    pub(super) fn new(values: &Values) -> Result<Self, ConfigError> {
        Ok(Self {
            run_dir: values.parse("run_dir", path)?,
            opened: values.parse("optional_sockets", optional)?,
            opens_console: values.parse("console_socket", boolean)?,
            opens_push: values.parse("push_socket", boolean)?,
        })
    }

    pub(super) fn gateway(&self) -> PathBuf {
        self.run_dir.join("gateway/gateway.sock")
    }

    pub(super) fn second_gateway(&self) -> PathBuf {
        self.run_dir.join("second-gateway/gateway.sock")
    }

    /// At this socket, the second gateway asks the first one for its turns.
    pub(super) fn ledger(&self) -> PathBuf {
        self.run_dir.join("ledger/ledger.sock")
    }

    pub(super) fn launcher(&self) -> PathBuf {
        self.run_dir.join("launcher/launcher.sock")
    }

    /// The directory with a folder for each check.
    pub(super) fn egress(&self) -> PathBuf {
        self.run_dir.join("egress")
    }

    /// At this socket, the gateway looks up TXT records for the intake.
    pub(super) fn texts(&self) -> PathBuf {
        self.run_dir.join("texts/texts.sock")
    }

    /// At this socket, the daemon accepts submissions and opt-outs.
    pub(super) fn intake(&self) -> PathBuf {
        self.run_dir.join("intake/intake.sock")
    }

    /// At this socket, the intake accepts HTTP requests from the web server in front.
    pub(super) fn intake_http(&self) -> PathBuf {
        self.run_dir.join("intake-http/http.sock")
    }

    /// At this socket, the daemon serves the console.
    pub(super) fn console(&self) -> PathBuf {
        self.run_dir.join("console/console.sock")
    }

    /// At this socket, the console accepts HTTP requests from the web server in front.
    pub(super) fn console_http(&self) -> PathBuf {
        self.run_dir.join("console-http/http.sock")
    }

    /// At this socket, the daemon accepts messages to other push services.
    pub(super) fn push(&self) -> PathBuf {
        self.run_dir.join("push/push.sock")
    }

    /// At this socket, the push service accepts connections from the web server in front.
    pub(super) fn push_http(&self) -> PathBuf {
        self.run_dir.join("push-http/http.sock")
    }

    /// At this socket, the push service's endpoint node does.
    pub(super) fn push_endpoint_http(&self) -> PathBuf {
        self.run_dir.join("push-endpoint-http/http.sock")
    }

    /// The folder of the sockets at which the push service's nodes ask each other.
    pub(super) fn push_nodes(&self) -> PathBuf {
        self.run_dir.join("push-nodes")
    }

    pub(super) fn texts_if_opened(&self) -> Option<PathBuf> {
        self.opened(Optional::Texts).then(|| self.texts())
    }

    pub(super) fn intake_if_opened(&self) -> Option<PathBuf> {
        self.opened(Optional::Intake).then(|| self.intake())
    }

    /// The socket at which the daemon serves Prometheus, if it opens it.
    pub(super) fn metrics_if_opened(&self) -> Option<PathBuf> {
        self.opened(Optional::Metrics)
            .then(|| self.run_dir.join("metrics/metrics.sock"))
    }

    pub(super) fn console_if_opened(&self) -> Option<PathBuf> {
        self.opens_console.then(|| self.console())
    }

    pub(super) fn push_if_opened(&self) -> Option<PathBuf> {
        self.opens_push.then(|| self.push())
    }

    fn opened(&self, socket: Optional) -> bool {
        self.opened.contains(&socket)
    }
}

fn optional(text: &str) -> Result<Vec<Optional>, String> {
    let names = [
        ("texts", Optional::Texts),
        ("intake", Optional::Intake),
        ("metrics", Optional::Metrics),
    ];
    list(text)
        .map(|item| {
            one_of(item, &names).map_err(|choices| format!("contains `{item}`; each {choices}"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_sockets_are_opened_by_name_and_no_others() {
        let values = |opened: &str| {
            let flags = |key: &str| match key {
                "run_dir" => Some("/r".to_owned()),
                "optional_sockets" => Some(opened.to_owned()),
                _ => None,
            };
            Sockets::new(&Values::gather(flags, |_| None, None).unwrap())
        };
        let opened = |names| {
            let sockets = values(names).unwrap();
            [
                sockets.texts_if_opened(),
                sockets.intake_if_opened(),
                sockets.metrics_if_opened(),
            ]
            .map(|path| path.map(|path| path.display().to_string()))
        };
        let at = |path: &str| Some(format!("/r/{path}"));
        assert_eq!(opened(""), [None, None, None]);
        assert_eq!(opened("metrics"), [None, None, at("metrics/metrics.sock")]);
        assert_eq!(
            opened("intake, texts"),
            [at("texts/texts.sock"), at("intake/intake.sock"), None]
        );
        assert_eq!(
            values("intake,text").unwrap_err().to_string(),
            "setting `optional_sockets` (flag): `intake,text` contains `text`; each must be `texts` or `intake` or `metrics`"
        );
    }
}
