//! Submissions and opt-outs from HTTP to the row.

mod stage;

use gateway::control::{Answer, Texts};
use store::AddedAs;
use token::Purpose;

use stage::{Stage, host, records, token};

const SOCIAL: &str = r#"{"host":"social.a.example"}"#;

#[tokio::test]
async fn an_owner_is_left_alone_at_once_and_comes_back_by_the_same_way() {
    let stage = Stage::start().await;
    let now = census::time::Timestamp(i64::try_from(stage::NOW).unwrap() * 1000);
    let added = stage
        .store
        .writer()
        .add_now(vec![host("social.a.example")], now)
        .await;
    assert_eq!(added.unwrap()[0].1, AddedAs::New);
    assert_eq!(stage.listed(), ["social.a.example"]);
    stage.publish_key("_fedicensus", "a.example");
    let out = token(Purpose::OptOut, "a.example", "social.a.example");
    let reply = stage.post("/opt-out", &out, SOCIAL).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.json["state"], "opted_out");
    assert!(stage.listed().is_empty());
    assert_eq!(stage.post("/opt-out", &out, SOCIAL).await.status, 200);
    assert_eq!(
        stage.get("/submit/social.a.example").await.json["state"],
        "opted_out"
    );

    let back = token(Purpose::OptIn, "a.example", "social.a.example");
    let body = r#"{"host":"social.a.example","undo":true}"#;
    let reply = stage.post("/opt-out", &back, body).await;
    assert_eq!(
        (reply.status, &reply.json["state"]),
        (200, &"waiting".into()),
        "{reply:?}"
    );
    assert_eq!(stage.listed(), ["social.a.example"]);
}
