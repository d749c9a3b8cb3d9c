//! Tokens in a request's headers, and whether they are valid for the request.
//!
//! It takes the headers, the purpose and the time, and returns who vouches. Before DNS is used, it
//! rejects headers that are not a token, tokens of both forms at once, tokens for another purpose,
//! and a public suffix that decides as an owner. Then it rejects tokens that none of the domain's
//! keys has signed, and a parent domain's token if the host has its own record.

use axum::http::HeaderMap;
use protocol::Host;
use token::own::{self, OwnToken, Rejected, UnixSeconds, Wanted};
use token::sigsum::{self, SigsumToken};
use token::{
    Candidates, Form, LogKey, Lookup, NotSigned, Purpose, Submitter, TestDomain, TxtRecord,
};

use crate::problem::Problem;
use crate::proof;
use crate::texts::{Found, Texts, dns_is_down};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    Own(OwnToken),
    Sigsum(SigsumToken),
}

/// The token in these headers. An empty header counts as none; of several with one name the first
/// counts. `test` decides whether a token of the test domain is accepted.
pub(crate) fn token_of(headers: &HeaderMap, test: TestDomain) -> Result<Option<Token>, Problem> {
    let value = |name| headers.get(name).map_or(&b""[..], |value| value.as_bytes());
    let malformed =
        |error: &dyn std::fmt::Display| Problem::bad("token_malformed", error.to_string());
    let own = OwnToken::parse(value(own::HEADER), test).map_err(|error| malformed(&error))?;
    let sigsum =
        SigsumToken::parse(value(sigsum::HEADER), test).map_err(|error| malformed(&error))?;
    match (own, sigsum) {
        (None, None) => Ok(None),
        (Some(own), None) => Ok(Some(Token::Own(own))),
        (None, Some(sigsum)) => Ok(Some(Token::Sigsum(sigsum))),
        (Some(_), Some(_)) => Err(Problem::bad(
            "two_tokens",
            format!(
                "send either {} or {}, not both",
                own::HEADER,
                sigsum::HEADER
            ),
        )),
    }
}

/// What a token has to be valid for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Occasion<'a> {
    pub(crate) purpose: Purpose,
    pub(crate) host: &'a Host,
    pub(crate) now: UnixSeconds,
    /// The key that Sigsum's tokens sign here. `None` if they are not accepted.
    pub(crate) log_key: Option<LogKey>,
}

impl Token {
    /// Verifies the token. Returns who vouches.
    pub(crate) async fn verify(
        &self,
        on: Occasion<'_>,
        texts: &Texts,
    ) -> Result<Submitter, Problem> {
        match self {
            Self::Own(token) => own_submitter(token, on, texts).await,
            Self::Sigsum(token) => sigsum_submitter(token, on, texts).await,
        }
    }
}

async fn own_submitter(
    token: &OwnToken,
    on: Occasion<'_>,
    texts: &Texts,
) -> Result<Submitter, Problem> {
    let wanted = Wanted {
        purpose: on.purpose,
        host: on.host,
        now: on.now,
    };
    token.claim.fits(wanted).map_err(rejected)?;
    let domain = &token.claim.domain;
    let owners = on.purpose.is_the_owners();
    if owners {
        reject_suffix(domain, on.host, texts)?;
    }
    let lookup = Lookup::begin(token.form(), domain.clone());
    let keys = Candidates::from_records(&texts.keys(lookup, domain).await?);
    let submitter = token.verify(&keys, wanted).map_err(rejected)?.submitter;
    // Only after a valid signature, so that no invalid token causes a look-up.
    if owners && domain != on.host {
        reject_overruled(domain, on.host, texts).await?;
    }
    Ok(submitter)
}

/// Rejects a domain above the host's registered domain: the names below a public suffix have
/// different owners.
fn reject_suffix(domain: &Host, host: &Host, texts: &Texts) -> Result<(), Problem> {
    let registered = texts.registered_domain(host);
    if domain.is_within(&registered) {
        return Ok(());
    }
    let words = format!(
        "{domain} can't decide for {host}, because others register names below it: sign with a key of {registered} or of {host}"
    );
    Err(Problem::forbidden("not_the_owner", words))
}

/// Rejects a parent domain's token if the host publishes its own key or wish.
async fn reject_overruled(domain: &Host, host: &Host, texts: &Texts) -> Result<(), Problem> {
    let name = format!("{}.{host}", Form::Own.label());
    let records = match texts.at_after_another(&name, host).await? {
        Found::Records(records) => records,
        Found::None(_) => return Ok(()),
        Found::Failed(_) => {
            return Err(dns_is_down(&format!("{name} could not be looked up")));
        }
    };
    let has_wish = proof::wish(records.iter().map(String::as_str)) != Ok(None);
    let records: Vec<_> = records
        .iter()
        .map(|record| TxtRecord::from_strings([record]))
        .collect();
    if !has_wish && Candidates::from_records(&records).keys().is_empty() {
        return Ok(());
    }
    let words = format!(
        "{domain} can't decide for {host}, which has a record of its own at {name}: sign with a key that is published there, or remove the record"
    );
    Err(Problem::forbidden("not_the_owner", words))
}

async fn sigsum_submitter(
    token: &SigsumToken,
    on: Occasion<'_>,
    texts: &Texts,
) -> Result<Submitter, Problem> {
    if on.purpose.is_the_owners() {
        return Err(Problem::forbidden(
            "wrong_purpose",
            format!(
                "{} contains no host, purpose or time, so it can't decide for an owner: send {}, or publish a proof",
                sigsum::HEADER,
                own::HEADER
            ),
        ));
    }
    let Some(log_key) = on.log_key else {
        return Err(Problem::bad(
            "sigsum_not_taken",
            format!(
                "this census does not accept {}: send {}",
                sigsum::HEADER,
                own::HEADER
            ),
        ));
    };
    let lookup = Lookup::begin(token.form(), token.domain.clone());
    let keys = Candidates::from_records(&texts.keys(lookup, &token.domain).await?);
    token.verify(&keys, log_key).map_err(not_signed)
}

fn not_signed(error: NotSigned) -> Problem {
    Problem::bad("not_signed", error.to_string())
}

fn rejected(error: Rejected) -> Problem {
    let words = error.to_string();
    match error {
        Rejected::Expired { .. } => Problem::bad("token_expired", words),
        Rejected::NotYet { .. } => Problem::bad("token_not_yet", words),
        Rejected::WrongPurpose { .. } => Problem::forbidden("wrong_purpose", words),
        Rejected::WrongHost { .. } => Problem::forbidden("wrong_host", words),
        Rejected::NotTheOwner { .. } => Problem::forbidden("not_the_owner", words),
        Rejected::NotSigned(error) => not_signed(error),
    }
}
