//! The push services to which messages may go, and endpoints at them.

use protocol::{Host, ListPath};

/// Names of push services. A name covers itself and all names below it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PushServices(Vec<Host>);

impl PushServices {
    pub fn covers(&self, host: &Host) -> bool {
        self.0.iter().any(|name| host.is_within(name.as_str()))
    }
}

impl From<Vec<Host>> for PushServices {
    fn from(names: Vec<Host>) -> Self {
        Self(names)
    }
}

/// An endpoint at another push service: `https`, the standard port, and no user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub host: Host,
    /// The path on it, with its query.
    pub path: ListPath,
}

impl Endpoint {
    /// Parses an endpoint; `None` if the text is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("https://")?;
        let (name, path) = rest.split_at_checked(rest.find('/')?)?;
        let host = Host::parse(name).ok()?;
        // A push service compares the origin in a signature as text.
        if host.as_str() != name {
            return None;
        }
        let path = ListPath::parse(path).ok()?;
        Some(Self { host, path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_covers_itself_and_what_is_below_it_and_nothing_else() {
        let names = [
            "updates.push.services.mozilla.com",
            "fcm.googleapis.com",
            "web.push.apple.com",
            "notify.windows.com",
        ];
        let names = names.map(|name| Host::parse(name).unwrap());
        let services = PushServices::from(names.to_vec());
        for (host, expect) in [
            ("fcm.googleapis.com", true),
            ("wns2-par02p.notify.windows.com", true),
            ("updates.push.services.mozilla.com", true),
            ("web.push.apple.com", true),
            ("googleapis.com", false),
            ("evil-notify.windows.com", false),
            ("windows.com", false),
            ("notify.windows.com.evil.example", false),
        ] {
            assert_eq!(
                services.covers(&Host::parse(host).unwrap()),
                expect,
                "{host}"
            );
        }
        let fcm = Host::parse("fcm.googleapis.com").unwrap();
        assert!(!PushServices::default().covers(&fcm));
    }

    #[test]
    fn an_endpoint_is_an_https_url_at_the_standard_port() {
        let endpoint = Endpoint::parse("https://push.example/p/a:b?x=1").unwrap();
        assert_eq!(endpoint.host.as_str(), "push.example");
        assert_eq!(endpoint.path.as_str(), "/p/a:b?x=1");
        for wrong in [
            "http://push.example/p",
            "https://push.example",
            "https://push.example:443/p",
            "https://push.example:8443/p",
            "https://user@push.example/p",
            "https://PUSH.example/p",
            "https://push.example./p",
            "https://127.0.0.1/p",
            "https://[::1]/p",
            "https:///p",
            "https://push.example//p",
            "https://push.example/p#x",
            "https://push.example/a b",
            "https://push.example/\u{e9}",
            "https://evil.example\\@push.example/p",
        ] {
            assert_eq!(Endpoint::parse(wrong), None, "{wrong}");
        }
    }
}
