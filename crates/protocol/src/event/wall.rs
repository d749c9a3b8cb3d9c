//! Products that keep robots away from a host.

use serde::{Deserialize, Serialize};

/// Makes the enum and its words from one table.
macro_rules! walls {
    ($($wall:ident => $word:literal,)*) => {
        /// What refuses robots in front of a host: a challenge, a captcha, a proof of work or a
        /// block page. A closed list, so that a checker can't put its own text here.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Wall {
            $(
                #[doc = concat!("`", $word, "`")]
                #[serde(rename = $word)]
                $wall,
            )*
        }

        impl Wall {
            /// The word on the wire and in a host's history.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$wall => $word,)*
                }
            }
        }
    };
}

walls! {
    Akamai => "akamai",
    Anubis => "anubis",
    AwsWaf => "aws_waf",
    Basedflare => "basedflare",
    Bunny => "bunny",
    Cleantalk => "cleantalk",
    Cloudflare => "cloudflare",
    Crowdsec => "crowdsec",
    Datadome => "datadome",
    DdosGuard => "ddos_guard",
    F5 => "f5",
    Fastly => "fastly",
    GoAway => "go_away",
    Haphash => "haphash",
    Human => "human",
    Imperva => "imperva",
    Imunify360 => "imunify360",
    ModSecurity => "mod_security",
    Radware => "radware",
    Safeline => "safeline",
    Siteground => "siteground",
    Sucuri => "sucuri",
    Vercel => "vercel",
    Wordfence => "wordfence",
    Unnamed => "unnamed",
}
