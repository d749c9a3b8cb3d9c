//! The words for people: a sentence for every place, every reason to be listed or not, and everything that a check can find, and what to do about it.
//!
//! Each match is exhaustive, so that what is new does not compile without its sentence; a script takes them from the page, where they stand for all
//! to read. They mean what `fedicensus explain` says.

use protocol::DeadReason;

use super::why::{Found, Place, Why};

/// What is said of one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Words {
    /// What it means.
    pub says: &'static str,
    /// What whoever runs the instance can do about it; empty when nothing is to be done.
    pub advice: &'static str,
}

const fn words(says: &'static str, advice: &'static str) -> Words {
    Words { says, advice }
}

const NOTHING_TO_DO: &str = "";

/// What a place means.
pub fn of_place(place: Place) -> &'static str {
    use census::state::StateName;
    match place {
        Place::Known(StateName::Discovered) => "We know its name, and no check has judged it yet.",
        Place::Known(StateName::Alive) => "It lives.",
        Place::Known(StateName::Dying) => "Its checks fail at the moment.",
        Place::Known(StateName::Dead) => {
            "It has not answered as an instance for long, and is asked seldom."
        }
        Place::Known(StateName::Moving) => "It redirects to another host, and may stop doing so.",
        Place::Known(StateName::Moved) => "It has redirected to another host for over a week.",
        Place::Waiting => "It was named, and waits for room.",
        // No answer has these two states: they are withheld.
        Place::Withheld | Place::Known(StateName::OptedOut | StateName::Parked) => {
            "This census does not say."
        }
    }
}

/// One list of all reasons to be listed or not: the match over it is exhaustive, and longer than a function may be.
macro_rules! whys {
    ($($why:ident => $words:expr,)*) => {
        /// Why a host is listed or is not, and what to do about it.
        pub fn of_why(why: Why) -> Words {
            match why {
                $(Why::$why => $words,)*
            }
        }
    };
}

whys! {
    Lives => words("It is listed: it lives.", NOTHING_TO_DO),
    LivesRefusing => words(
        "It is listed: it lived within the last 14 days, though it refused to talk to us the last time.",
        "Let our user agent read /.well-known/nodeinfo and the document that it names, or it falls off the list 14 days after it last answered.",
    ),
    Failing => words(
        "It is listed still: it lived a short while ago, and its checks have failed since.",
        "See what the last check found. An instance that fails for a week of daily checks counts as dead.",
    ),
    MovingToNobody => words(
        "It is listed: it redirects to another host, and that one does not live itself.",
        "If you moved for good, make sure that the new host serves NodeInfo under its own name; if you did not, end the redirect.",
    ),
    LeavesNext => words(
        "It is listed still: what we know of it now would not list it, and it leaves with the next list that is published.",
        "See where it stands and what the last check found. A list that lost too many names at once waits until whoever runs this census has looked at it.",
    ),
    NextList => words(
        "It is not listed yet: nothing stands against it, and it comes in with the next list that is published.",
        "Wait: a list is made about every six hours. One that lost too many names at once waits until whoever runs this census has looked at it.",
    ),
    Withheld => words(
        "It is not listed: its owner asked to be left out, or this census does not list it.",
        "If it is yours and you want to be listed, look at its robots.txt and at its software's setting for statistics (metadata.private in NodeInfo, site.private with GNU Social and Friendica, hide_in_statistics with Hubzilla), and take back an opt-out with a signed token. Otherwise ask at the contact below.",
    ),
    TakenOver => words(
        "It is not listed: another crawler, whose list was taken over here, says that it lived, and no check of ours has found so yet.",
        "Wait: it is listed once a check of ours has found that it lives and may be shown. If it has been asked already, see what the last check found.",
    ),
    RefusesSoFar => words(
        "It is not listed: somebody is there, who has refused to talk to us so far.",
        "Let our user agent read /.well-known/nodeinfo and the document that it names: a firewall, a challenge for browsers or a login stands before them.",
    ),
    NeverJudged => words(
        "It is not listed: we know its name, and have not judged it yet.",
        "Wait: a new name is asked within about a day. Its checks may also have failed on our side, which never counts against it.",
    ),
    Gone => words(
        "It is not listed: it answered 410 Gone, which we take as a plea to be left out.",
        "If it is back, serve /.well-known/nodeinfo again: it is listed once it answers.",
    ),
    Dead => words(
        "It is not listed: it has not answered as an instance for too long.",
        "See what the last check found. Once that is mended it is listed after the next check.",
    ),
    Moved => words(
        "It is not listed: it has redirected to another host for over a week.",
        "Ask for the other host's name. If the redirect is a mistake, end it: the next check notices.",
    ),
    MovedToListed => words(
        "It is not listed: it redirects to another host, which is listed instead.",
        "Ask for the other host's name. If the redirect is a mistake, end it: the next check notices.",
    ),
    NeverAlive => words(
        "It is not listed: none of its checks has found an instance yet.",
        "See what the last check found.",
    ),
    Stale => words(
        "It is not listed: its last checks found no instance, and nothing stays on the list for more than 14 days without one.",
        "See what the last check found. Once that is mended it is listed after the next check.",
    ),
    GroupHeld => words(
        "It is not listed: there are more hosts below its registered domain than we take without somebody looking at them, and nobody has looked yet.",
        "Write to the contact below and say what these hosts are.",
    ),
    Waiting => words(
        "It is not listed: it was named, and had no room yet, for only so many new names are taken a day.",
        "Wait: it comes in by itself. Those that most others name come first.",
    ),
}

/// What a host that has no entry is told.
pub const UNKNOWN: Words = words(
    "It is not listed: we know nothing of it. Either no peers list that we read has named it yet, or it never answered in a year and was given up, or the operator of this census does not let it in.",
    "We find a host by itself once it federates with others whose software tells its peers. Write to the contact below to have it asked soon, or to learn whether it is let in.",
);

/// The word of what a check found: the wire's own where it has one.
pub fn found_word(found: Found) -> &'static str {
    match found {
        Found::Alive => "alive",
        Found::Moved => "redirected",
        Found::OptedOut => "refused_by_robots",
        Found::Gone => "answered_gone",
        Found::Refused => "refused",
        Found::Dead(reason) => of_reason(reason).0,
    }
}

/// What a check found, and what to do about it.
pub fn of_found(found: Found) -> Words {
    match found {
        Found::Alive => words("It answered as an instance.", NOTHING_TO_DO),
        Found::Moved => words(
            "It redirected for good (301 or 308) to another host.",
            NOTHING_TO_DO,
        ),
        Found::OptedOut => words("Its robots.txt asked us to stay away.", NOTHING_TO_DO),
        Found::Gone => words("It answered 410 Gone.", NOTHING_TO_DO),
        Found::Refused => words(
            "It answered and would not talk to us: status 401, 403, 429, 451 or 503 with Retry-After, or a challenge for browsers.",
            "Let our user agent read /robots.txt, /.well-known/nodeinfo and the document that it names.",
        ),
        Found::Dead(reason) => of_reason(reason).1,
    }
}

/// One list of all reasons, so that none is on the page without a sentence or the other way round.
macro_rules! reasons {
    ($($reason:ident => ($word:literal, $says:literal, $advice:expr),)*) => {
        /// All that a check can find.
        pub const FOUND: &[Found] = &[
            Found::Alive,
            Found::Moved,
            Found::OptedOut,
            Found::Gone,
            Found::Refused,
            $(Found::Dead(DeadReason::$reason),)*
        ];

        fn of_reason(reason: DeadReason) -> (&'static str, Words) {
            match reason {
                $(DeadReason::$reason => ($word, words($says, $advice)),)*
            }
        }
    };
}

const CONTACT_IF_IT_STAYS: &str =
    "If it stays so while others reach you, write to the contact below.";

reasons! {
    RobotsUnavailable => ("robots_unavailable", "Its robots.txt could not be read (status 5xx, or it broke off), and without it nothing else is asked for.", "Serve /robots.txt, or answer 404 for it."),
    Tls => ("tls", "The TLS handshake failed, for instance because port 443 does not speak TLS.", "Look at the web server's TLS settings for this name."),
    TlsExpired => ("tls_expired", "Its certificate has expired.", "Renew the certificate, and reload the web server."),
    TlsNotYetValid => ("tls_not_yet_valid", "Its certificate is not valid yet.", "Look at the certificate's dates and at the server's clock."),
    TlsWrongName => ("tls_wrong_name", "It has no certificate for this name.", "Get a certificate for this very name."),
    TlsSelfSigned => ("tls_self_signed", "Its certificate is self-signed.", "Get a certificate from a public authority."),
    TlsUnknownIssuer => ("tls_unknown_issuer", "No public authority that we trust issued its certificate.", "Get a certificate from a public authority, and serve the intermediate certificates that belong to it."),
    TlsIncompleteChain => ("tls_incomplete_chain", "It sent its own certificate without the intermediate ones, and no root that we trust issued that one.", "Serve the full chain (often a file named fullchain.pem)."),
    TlsUnsupported => ("tls_unsupported", "It supports no TLS version and cipher that we support (TLS 1.2 and 1.3).", "Turn on TLS 1.2 or 1.3 with a common cipher."),
    TlsClosed => ("tls_closed", "It closed the connection during the TLS handshake.", "Look whether the web server serves this name over TLS, and what stands before it."),
    Http => ("http", "What it answered was not HTTP, or broke off.", "Look at the web server and what stands before it."),
    Timeout => ("timeout", "It accepted the connection and did not answer in time.", "Look whether /.well-known/nodeinfo answers within ten seconds."),
    Deadline => ("deadline", "It answered so slowly that the check's time was over.", "Look whether /robots.txt and /.well-known/nodeinfo answer within some seconds."),
    TooSlow => ("too_slow", "It sent less than 10 KiB in 10 seconds.", "Look how long /robots.txt, /.well-known/nodeinfo and the document that it names take to load."),
    TooLarge => ("too_large", "It sent more bytes than such a document may have.", "Look at what /.well-known/nodeinfo and the document that it names send."),
    Encoding => ("encoding", "It sent a content encoding that we did not offer, or several.", "Look at what compresses answers before your software."),
    RedirectLoop => ("redirect_loop", "It redirected too often.", "Serve /.well-known/nodeinfo without a chain of redirects."),
    RedirectToSelf => ("redirect_to_self", "It redirected to itself.", "Look at the rules that redirect between http and https, or between spellings of the name."),
    TemporaryRedirect => ("temporary_redirect", "It redirected to another host for now (302, 303 or 307).", "If the instance is at the other host, redirect for good (301 or 308); else serve /.well-known/nodeinfo here."),
    BadRedirect => ("bad_redirect", "It redirected to nowhere: the target is missing or no valid name.", "Look at the Location header of the answer to /.well-known/nodeinfo."),
    NodeinfoElsewhere => ("nodeinfo_elsewhere", "Its NodeInfo document lies on another host, which we do not follow.", "Ask for the other host's name. To have this one listed, its /.well-known/nodeinfo has to name a document on this host."),
    NoNodeinfo => ("no_nodeinfo", "There is no /.well-known/nodeinfo, no supported link in it, or nothing behind the link.", "Your software or its reverse proxy has to serve NodeInfo; with some it has to be turned on."),
    NotNodeinfo => ("not_nodeinfo", "Something answered, but not with NodeInfo.", "Look whether /.well-known/nodeinfo and the document that it names are JSON that names the software, and not a web page."),
    Status => ("status", "It answered with an unexpected status, such as 500 or 502.", "Look whether your software runs behind its web server."),
    NoSuchName => ("no_such_name", "The name does not exist in DNS.", "Look whether the domain is still registered and the name is in its zone."),
    NoAddress => ("no_address", "The name has no address in DNS.", "Give it an A or AAAA record."),
    AddressRefused => ("address_refused", "Its addresses are not reachable by everybody (private or special ones), or the operator of this census does not dial them.", "Look at the A and AAAA records of the name."),
    DnsBroken => ("dns_broken", "Its name servers failed several times in a row.", "Look at your name servers and at DNSSEC."),
    Unreachable => ("unreachable", "No address of it accepted a connection at port 443.", "Look whether the server runs and its firewall lets port 443 through."),
    Protocol => ("protocol", "The check broke off: what came from it was more than the check may say.", CONTACT_IF_IT_STAYS),
    Crashed => ("crashed", "The check crashed over what it sent.", CONTACT_IF_IT_STAYS),
    Memory => ("memory", "The check ran out of memory over what it sent.", CONTACT_IF_IT_STAYS),
    Budget => ("budget", "It sent more bytes, or took more connections, than a check may use.", "Look at what /robots.txt and /.well-known/nodeinfo send."),
    Faulting => ("faulting", "Its checks, and nobody else's, keep failing on our side.", CONTACT_IF_IT_STAYS),
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
    fn a_reason_says_first_whether_the_host_is_listed() {
        for why in Why::ALL {
            let says = of_why(*why).says;
            assert_eq!(why.is_listed(), says.starts_with("It is listed"), "{says}");
            assert_eq!(
                !why.is_listed(),
                says.starts_with("It is not listed"),
                "{says}"
            );
            assert_eq!(of_why(*why).advice.is_empty(), *why == Why::Lives, "{says}");
        }
    }
}
