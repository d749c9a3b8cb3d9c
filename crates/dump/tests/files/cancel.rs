//! Sets that are cancelled while companions and the index are written.

use dump::Cancel;

use super::*;

/// The list at the root, five data files, five schemas.
const PACKED: u64 = 1 + 5 + 5;

#[test]
fn a_set_that_is_stopped_at_any_file_leaves_what_stood_and_nothing_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    publish(folder.path(), &[listed("a.example")]);
    let stood = files(folder.path());
    let mut looks = 0;
    let sealed = loop {
        let mut draft = draft(folder.path(), &[listed("b.example")]).unwrap();
        draft.cancel_on(&Cancel::after(looks));
        match draft.seal() {
            Ok(sealed) => break sealed,
            Err(error) => assert!(matches!(error, DumpError::Cancelled), "{looks}: {error}"),
        }
        assert!(files(folder.path()) == stood, "{looks}");
        looks += 1;
    };
    assert_eq!(looks, PACKED);
    sealed.publish().unwrap();
    let names = &files(folder.path())[dump::NODES_FILE];
    assert!(String::from_utf8_lossy(names).contains("b.example"));
}
