//! Tokens in a request's headers, and what they are good for.
//!
//! In: headers, what is wanted, and the moment. Out: who vouches. Refused before DNS is asked: what is no token, both forms at once, a token that is
//! not for this; then what none of the domain's keys has signed.

use axum::http::HeaderMap;
use protocol::Host;
use token::own::{self, OwnToken, Rejected, UnixSeconds, Wanted};
use token::sigsum::{self, SigsumToken};
use token::{Candidates, LogKey, Lookup, NotSigned, Purpose, Submitter, TestDomain};

use crate::problem::Problem;
use crate::texts::Texts;

/// A token that came with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    Own(OwnToken),
    Sigsum(SigsumToken),
}

/// The token among these headers. An empty header is none; of several of one name the first counts.
///
/// # Errors
/// What is there is no token, or there is one of each form.
pub(crate) fn token_of(headers: &HeaderMap) -> Result<Option<Token>, Problem> {
    let value = |name| headers.get(name).map_or(&b""[..], |value| value.as_bytes());
    let malformed =
        |error: &dyn std::fmt::Display| Problem::bad("token_malformed", error.to_string());
    let own = OwnToken::parse(value(own::HEADER), TestDomain::Refuse)
        .map_err(|error| malformed(&error))?;
    let sigsum = SigsumToken::parse(value(sigsum::HEADER), TestDomain::Refuse)
        .map_err(|error| malformed(&error))?;
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

/// What a token has to be good for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Occasion<'a> {
    pub(crate) purpose: Purpose,
    pub(crate) host: &'a Host,
    pub(crate) now: UnixSeconds,
    /// The key that Sigsum's tokens sign here, if they are taken.
    pub(crate) log_key: Option<LogKey>,
}

impl Token {
    /// Who vouches.
    ///
    /// # Errors
    /// It is not good for this, or nobody can know now.
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
    let lookup = Lookup::begin(token.form(), domain.clone());
    let keys = Candidates::from_records(&texts.keys(lookup, domain).await?);
    Ok(token.verify(&keys, wanted).map_err(rejected)?.submitter)
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
                "{} names no host, no purpose and no time, so it decides nothing for an owner: send {}, or publish a proof",
                sigsum::HEADER,
                own::HEADER
            ),
        ));
    }
    let Some(log_key) = on.log_key else {
        return Err(Problem::bad(
            "sigsum_not_taken",
            format!(
                "this census has no key for {}: send {}",
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
