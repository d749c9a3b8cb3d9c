//! A decision that is taken back leaves its group as it was.

use super::*;

#[tokio::test]
async fn held_back_hosts_stay_so_when_a_decision_is_taken_back() {
    for decision in [
        Decision::None,
        Decision::Allow,
        Decision::Deny,
        Decision::Limit { a_day: 5 },
    ] {
        let census = Census::new();
        census.add_sources(&["one.net", "two.net"]).await;
        census.add(farm(0..30), NOW).await;
        for name in farm(0..30) {
            census.note(&name, "one.net", NOW).await;
        }
        census.make_due(1, NOW).await;
        let before = (census.listed(NOW), census.farm().held_back);
        let sources = |census: &Census| {
            let evidence = |host: &Host| census.store.reader().unwrap().evidence(host, NOW, REAL);
            farm(0..30)
                .iter()
                .map(|host| evidence(host).unwrap())
                .collect::<Vec<_>>()
        };
        let named = sources(&census);
        assert!(
            before.1 > 0 && before.0.len() < 30,
            "they respond and are held back"
        );
        census.decide(decision, NOW).await;
        census.decide(Decision::None, NOW).await;
        let after = (census.listed(NOW), census.farm().held_back);
        assert_eq!(after, before, "{decision:?}");
        assert_eq!(sources(&census), named, "{decision:?}");
    }
}
