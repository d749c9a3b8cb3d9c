//! Whatever hosts say about themselves is read back unchanged from every format. `crates/store`
//! tests the same for the table.

use proptest::prelude::*;

use super::*;

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z]{1,12}",
        3 => "\\PC{0,30}",
        3 => "[=+@'\"\\-,;\t\r\n \u{feff}\u{0}a1＝]{0,12}",
        1 => proptest::collection::vec(any::<char>(), 0..300).prop_map(String::from_iter),
    ]
}

fn any_rows() -> impl Strategy<Value = Vec<ListedRow>> {
    let state = prop_oneof![
        Just(ListedState::Alive),
        Just(ListedState::Dying),
        Just(ListedState::Moving)
    ];
    let text = || proptest::option::of(any_text());
    let row = (
        text(),
        text(),
        state,
        0..4_000_000_000_000_i64,
        0..4_000_000_000_000_i64,
        proptest::option::of(any::<bool>()),
    );
    proptest::collection::btree_map("[a-z0-9.-]{1,30}", row, 0..40).prop_map(|rows| {
        let rows = rows.into_iter();
        rows.map(
            |(host, (software, version, state, first_seen, last_alive, open_registrations))| {
                ListedRow {
                    host,
                    state,
                    first_seen: Moment::from_milliseconds(first_seen),
                    last_alive: Moment::from_milliseconds(last_alive),
                    instance: Instance {
                        software,
                        version,
                        open_registrations,
                        ..Instance::default()
                    },
                }
            },
        )
        .collect()
    })
}

/// The documented rule: an empty field is unknown, and one apostrophe is removed at the beginning
/// and after each character that may separate cells.
fn read_field(field: &str) -> Option<String> {
    let mut read = String::new();
    for cell in field.split_inclusive(PARTS_CELLS) {
        read.push_str(cell.strip_prefix('\'').unwrap_or(cell));
    }
    (!field.is_empty()).then_some(read)
}

/// Characters that spreadsheets may read as the end of a field or a line.
const PARTS_CELLS: [char; 4] = [';', '\t', '\r', '\n'];

fn from_csv(bytes: &[u8]) -> Vec<ListedRow> {
    let mut reader = csv::Reader::from_reader(bytes);
    let records = reader.records().map(|record| {
        let record = record.unwrap();
        let field = |number| read_field(&record[number]);
        let truth = field(6).map(|word| word.parse::<bool>().unwrap());
        let value = serde_json::json!({
            "host": field(0), "software": field(1), "version": field(2), "state": field(3), "first_seen": field(4), "last_alive": field(5),
            "open_registrations": truth,
        });
        serde_json::from_value(value).unwrap()
    });
    records.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_rows_come_back_equal(rows in any_rows()) {
        let files = written(&rows);
        let lines: Vec<ListedRow> = serde_json::Deserializer::from_slice(&files["data/instances.ndjson"])
            .into_iter()
            .map(Result::unwrap)
            .collect();
        prop_assert_eq!(&lines, &rows);
        prop_assert_eq!(&from_csv(&files["data/instances.csv"]), &rows);
        let names: Vec<String> = serde_json::from_slice(&files["nodes.json"]).unwrap();
        prop_assert!(names.iter().eq(rows.iter().map(|row| &row.host)));
        let software: serde_json::Value = serde_json::from_slice(&files["data/software.json"]).unwrap();
        prop_assert_eq!(&software["instances"], rows.len());
    }

    /// No field begins with a formula, whichever separator a spreadsheet uses.
    #[test]
    fn no_field_begins_a_formula(rows in any_rows()) {
        let files = written(&rows);
        let is_passed_over = |letter: char| letter.is_whitespace() || letter.is_control() || letter == '\u{feff}';
        let is_formula = |cell: &str| cell.trim_start_matches(is_passed_over).starts_with(['=', '+', '-', '@', '＝']);
        let bytes = files["data/instances.csv"].as_slice();
        for record in csv::Reader::from_reader(bytes).records() {
            for field in record.unwrap().iter().skip(1) {
                prop_assert!(!is_formula(field), "{:?}", field);
                prop_assert!(!field.split(PARTS_CELLS).any(is_formula), "{:?}", field);
            }
        }
        for separator in [b';', b'\t'] {
            let mut reader = csv::ReaderBuilder::new().delimiter(separator).flexible(true).from_reader(bytes);
            for record in reader.records() {
                for cell in record.unwrap().iter() {
                    prop_assert!(!is_formula(cell), "{:?}", cell);
                }
            }
        }
    }
}

#[test]
fn a_list_longer_than_any_buffer_comes_out_whole() {
    let names: Vec<String> = (0..6000)
        .map(|index| format!("host-{index:08}.example"))
        .collect();
    let rows: Vec<_> = names.iter().map(|name| listed(name)).collect();
    let files = written(&rows);
    assert_eq!(
        serde_json::from_slice::<Vec<String>>(&files["data/nodes.json"]).unwrap(),
        names
    );
    assert_eq!(from_csv(&files["data/instances.csv"]), rows);
}
