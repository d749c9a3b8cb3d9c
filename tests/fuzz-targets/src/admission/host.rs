//! Names have one canonical form, in which the URL parser and TLS find the same host; and
//! which names may enter the census.

use crate::input::is_canonical;
use admission::{Names, Reserved, Suffixes};
use protocol::Host;
use url::Url;

pub fn check(data: &[u8]) {
    let text = data.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let Ok(host) = Host::parse(text) else {
        return;
    };
    is_canonical(&host);
    let name = host.as_str();
    for same in [format!("{name}."), name.to_uppercase()] {
        assert_eq!(Host::parse(&same).as_ref(), Ok(&host));
    }
    for more in [
        format!("{name}/"),
        format!("{name}:443"),
        format!("x@{name}"),
        format!("https://{name}"),
        format!(".{name}"),
        format!("{name}.."),
    ] {
        assert!(Host::parse(&more).is_err(), "{more}");
    }
    // The request is built from the name as text: it must lead to this host, and can't set a path,
    // port or address.
    let url = Url::parse(&format!("https://{name}/x")).expect("a name stands in an address");
    assert_eq!(url.domain(), Some(name));
    assert_eq!((url.path(), url.port()), ("/x", None));
    rustls::pki_types::DnsName::try_from(name).expect("TLS can ask for it");
    crate::input::survives_the_way(&host);

    admitted(&host);
}

fn admitted(host: &Host) {
    let names = |reserved| Names {
        suffixes: Suffixes::compiled(),
        reserved,
    };
    let outside = names(Reserved::Refuse);
    let lab = names(Reserved::AllowInLab);
    let owner = outside.registered_domain(host);
    assert!(host.is_within(&owner), "{host} belongs to {owner}");
    if outside.admit_host(host.clone()).is_ok() {
        assert!(lab.admit_host(host.clone()).is_ok());
        // A name's owner owns all names below it, so all of them have one pace.
        let suffix = outside.suffixes.suffix(host);
        assert!(suffix.is_known && host.as_str() != suffix.name);
        assert_eq!(owner.split('.').count(), suffix.name.split('.').count() + 1);
        let owner = Host::parse(&owner).expect("a name");
        assert_eq!(outside.registered_domain(&owner), owner.as_str());
        assert!(outside.admit_host(owner).is_ok());
        let tops = [
            "test",
            "example",
            "onion",
            "local",
            "arpa",
            "localhost",
            "internal",
        ];
        assert!(!tops.contains(&host.top_level()));
    }
}
