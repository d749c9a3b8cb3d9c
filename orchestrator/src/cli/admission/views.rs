//! Rules, their errors, and names, as JSON.

use admission::rules::{LineError, ListPlace, RulesError};
use admission::{DomainName, Rules, Suffixes};
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct Parsed {
    keys: Vec<ParsedKey>,
    domains: Vec<ParsedDomain>,
    public: Option<ParsedPublic>,
}

#[derive(Serialize)]
struct ParsedKey {
    key_hash: String,
    limit: u32,
}

#[derive(Serialize)]
struct ParsedDomain {
    domain: String,
    limit: u32,
}

#[derive(Serialize)]
struct ParsedPublic {
    file: String,
    limit: u32,
}

impl From<&Rules> for Parsed {
    fn from(rules: &Rules) -> Self {
        let keys = rules.keys.iter().map(|(key, limit)| ParsedKey {
            key_hash: key.to_string(),
            limit: limit.get(),
        });
        let domains = rules.domains.iter().map(|(domain, limit)| ParsedDomain {
            domain: domain.to_string(),
            limit: limit.get(),
        });
        let public = rules.public.as_ref().map(|public| ParsedPublic {
            file: ListPlace::to_string(&public.list),
            limit: public.limit.get(),
        });
        Self {
            keys: keys.collect(),
            domains: domains.collect(),
            public,
        }
    }
}

/// What is wrong with a rules file, as JSON.
#[derive(Serialize)]
pub(super) struct Wrong {
    errors: Vec<WrongLine>,
}

#[derive(Serialize)]
struct WrongLine {
    line: Option<usize>,
    text: Option<String>,
    problem: String,
}

impl From<&RulesError> for Wrong {
    fn from(error: &RulesError) -> Self {
        let line = |wrong: &LineError| WrongLine {
            line: Some(wrong.line),
            text: Some(wrong.text.clone()),
            problem: wrong.problem.to_string(),
        };
        let errors = match error {
            RulesError::Malformed { lines, .. } => lines.iter().map(line).collect(),
            RulesError::TooLarge { .. } | RulesError::TooManyLines { .. } => {
                return Self::file(error);
            }
        };
        Self { errors }
    }
}

impl Wrong {
    /// An error about the file as a whole.
    pub(super) fn file(error: &dyn std::error::Error) -> Self {
        Self {
            errors: vec![WrongLine {
                line: None,
                text: None,
                problem: error.to_string(),
            }],
        }
    }
}

/// A name as `admission name` shows it.
#[derive(Serialize)]
pub(super) struct NameView {
    pub(super) input: String,
    pub(super) name: Option<String>,
    pub(super) public_suffix: Option<String>,
    pub(super) registered_domain: Option<String>,
    pub(super) reason: Option<String>,
}

impl NameView {
    pub(super) fn new(input: String, suffixes: &Suffixes) -> Self {
        let domain = match DomainName::parse(&input) {
            Ok(domain) => domain,
            Err(why) => {
                return Self {
                    input,
                    name: None,
                    public_suffix: None,
                    registered_domain: None,
                    reason: Some(why.to_string()),
                };
            }
        };
        let suffix = suffixes.suffix_of_domain(&domain);
        let registered = suffixes.registered_domain(&domain);
        Self {
            input,
            public_suffix: suffix.is_known.then(|| suffix.name.to_owned()),
            registered_domain: registered.ok().map(str::to_owned),
            reason: registered.err().map(|why| why.to_string()),
            name: Some(domain.to_string()),
        }
    }
}
