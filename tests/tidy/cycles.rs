//! Import cycles between the files of a crate have at most three files, and two folders side by
//! side never import each other.
//!
//! A file imports another if its product code names something that the other defines: in a `use`,
//! or by a path that starts with `crate`, `self` or `super` ([`graph`] resolves them). A parent
//! that declares its child modules, or calls `child::run()`, imports nothing: it assembles them.
//! Its `use child::Thing` is an import, because it makes the child's name its own.
//!
//! Files that all import each other, directly or through others, are one cycle: none of them can be
//! understood, tested or moved without the rest.

mod graph;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::tree::{manifests, none, root};
use graph::{Graph, Import};

/// A pair that shares a type with a helper is still read together; among four files, the subject
/// has no direction.
const FILES_MAX: usize = 3;

#[test]
fn import_cycles_have_at_most_three_files_and_folders_none() {
    let mut breaches = Vec::new();
    let mut mutual = Vec::new();
    let mut files = 0;
    for crate_root in crate_roots() {
        let graph = Graph::of(&crate_root, &|path| {
            std::fs::read_to_string(root().join(path)).ok()
        });
        files += graph.files.len();
        breaches.extend(long_cycles(&graph));
        mutual.extend(mutual_folders(&graph));
    }
    assert!(files > 100, "the search read only {files} files");
    let advice = "break these import cycles: move what their files share into a module of its own";
    none(advice, &breaches);
    none("let these folders import each other one way only", &mutual);
}

/// Pairs of folders side by side that import each other. A module's file belongs to its folder.
fn mutual_folders(graph: &Graph) -> Vec<String> {
    let above = |file| Path::new(file).ancestors().skip(1).filter_map(Path::to_str);
    let folders: BTreeSet<&str> = graph.files.iter().flat_map(above).collect();
    let mut arrows: BTreeMap<_, &str> = BTreeMap::new();
    for import in &graph.imports {
        let [from, to] = [import.from, import.to]
            .map(|file| graph.files[file].trim_end_matches(".rs").split('/'));
        let [mut above, mut left, mut right] = [const { String::new() }; 3];
        for (one, other) in from.zip(to) {
            (left, right) = (format!("{above}{one}"), format!("{above}{other}"));
            above = format!("{left}/");
            if left != right {
                break;
            }
        }
        if left != right && folders.contains(&*left) && folders.contains(&*right) {
            arrows.insert((left, right), &*import.paths[0]);
        }
    }
    let back = |(from, to): &(String, String)| arrows.get(&(to.clone(), from.clone()));
    let pairs = arrows.iter().filter(|((from, to), _)| from < to);
    pairs
        .filter_map(|(pair, there)| {
            let (from, to) = pair;
            Some(format!("{from} and {to}: {there}, {}", back(pair)?))
        })
        .collect()
}

fn crate_roots() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (folder, manifest) in manifests() {
        let programs = manifest.get("bin").and_then(toml::Value::as_array);
        let programs = programs.into_iter().flatten();
        let named = programs.filter_map(|program| program.get("path")?.as_str());
        for path in named.chain(["src/lib.rs", "src/main.rs"]) {
            let path = format!("{folder}/{path}");
            if root().join(&path).exists() {
                found.insert(path);
            }
        }
    }
    found
}

/// Cycles of more than [`FILES_MAX`] files, each with its files and the import to look at first.
fn long_cycles(graph: &Graph) -> Vec<String> {
    cycles(graph.files.len(), &graph.imports)
        .into_iter()
        .filter(|cycle| cycle.len() > FILES_MAX)
        .map(|cycle| {
            let names = cycle.iter().map(|file| graph.files[*file].as_str());
            let names: Vec<_> = names.collect();
            let first = weakest(graph, &cycle);
            format!(
                "{} files: {}\n    look first at {}, which imports {}: {}",
                cycle.len(),
                names.join(", "),
                graph.files[first.from],
                graph.files[first.to],
                first.paths.join(", ")
            )
        })
        .collect()
}

/// The import whose removal leaves the smallest largest cycle; among equals, the one with the
/// fewest paths.
fn weakest<'a>(graph: &'a Graph, cycle: &BTreeSet<usize>) -> &'a Import {
    let within: Vec<_> = graph
        .imports
        .iter()
        .filter(|import| cycle.contains(&import.from) && cycle.contains(&import.to))
        .collect();
    let rest = |without: &Import| {
        let others = within.iter().copied().filter(|import| *import != without);
        let others: Vec<_> = others.cloned().collect();
        let cycles = cycles(graph.files.len(), &others);
        (cycles.iter().map(BTreeSet::len).max(), without.paths.len())
    };
    let first = within.iter().copied().min_by_key(|import| rest(import));
    first.expect("a cycle has imports")
}

/// The sets of two or more files in which each file reaches every other.
fn cycles(files: usize, imports: &[Import]) -> Vec<BTreeSet<usize>> {
    let mut next = vec![Vec::new(); files];
    for import in imports {
        next[import.from].push(import.to);
    }
    let reached: Vec<BTreeSet<usize>> = (0..files)
        .map(|file| {
            let mut reached = BTreeSet::new();
            let mut open = vec![file];
            while let Some(file) = open.pop() {
                open.extend(next[file].iter().filter(|to| reached.insert(**to)));
            }
            reached
        })
        .collect();
    let mut found = Vec::new();
    let mut placed = BTreeSet::new();
    for file in 0..files {
        let reached_by = reached[file].iter().copied();
        let cycle = reached_by.filter(|other| reached[*other].contains(&file));
        let cycle: BTreeSet<usize> = cycle.collect();
        if cycle.len() > 1 && placed.insert(cycle.clone()) {
            found.push(cycle);
        }
    }
    found
}

fn of_crate(files: &[(&str, &str)]) -> Vec<String> {
    let graph = Graph::of("src/lib.rs", &|path| {
        let text = files.iter().find(|(name, _)| *name == path);
        text.map(|(_, text)| (*text).to_owned())
    });
    long_cycles(&graph)
}

#[test]
fn a_cycle_of_four_files_is_found_and_one_of_three_is_allowed() {
    let three = [
        ("src/lib.rs", "mod a; mod b; mod c; mod d;"),
        ("src/a.rs", "use crate::b::B; pub struct A;"),
        ("src/b.rs", "pub struct B; fn f() { crate::c::f() }"),
        ("src/c.rs", "pub fn f() { drop(super::a::A) }"),
        ("src/d.rs", "use super::{a::A, b::B};"),
    ];
    assert_eq!(of_crate(&three), [""; 0]);
    let mut four = three;
    four[3].1 = "use crate::d as other; pub fn f() {}";
    let found = of_crate(&four);
    assert_eq!(found.len(), 1, "{found:?}");
    let expect = "4 files: src/a.rs, src/b.rs, src/c.rs, src/d.rs\n    \
         look first at src/b.rs, which imports src/c.rs: crate::c::f";
    assert_eq!(found[0], expect);
}

#[test]
fn a_parent_that_uses_its_children_is_in_their_cycle() {
    let children = "use super::State;";
    let parent = |text: &str| {
        of_crate(&[
            ("src/lib.rs", "mod a;"),
            ("src/a.rs", text),
            ("src/a/b.rs", children),
            ("src/a/c.rs", children),
            ("src/a/d.rs", children),
        ])
        .len()
    };
    for (uses, expect) in [
        ("", 0),
        ("pub use b::B; pub use self::c::{C, D}; pub use d::*;", 1),
        ("fn f() { b::f(); c::f(); vec![d::f()] }", 0),
        ("use {b::B, c::C}; fn f() { vec![self::d::f()] }", 1),
    ] {
        let text = format!("mod b; mod c; mod d; struct State; {uses}");
        assert_eq!(parent(&text), expect, "{uses}");
    }
}

#[test]
fn a_name_that_a_parent_hands_on_counts_for_the_file_that_defines_it() {
    let parent = "mod b; mod c; mod d; mod e; pub use b::B; use c::C; pub use d::*; pub use e::E;";
    let found = of_crate(&[
        ("src/lib.rs", "mod a;"),
        ("src/a.rs", parent),
        ("src/a/b.rs", "pub struct B;"),
        ("src/a/c.rs", "use super::B; pub struct C;"),
        ("src/a/d.rs", "use super::C; pub struct D;"),
        ("src/a/e.rs", "use super::{B, C, D}; pub struct E;"),
    ]);
    assert_eq!(found, [""; 0]);
}

#[test]
fn tests_comments_scopes_and_texts_import_nothing() {
    let lib = "mod a; mod b; mod c; mod d; #[cfg(test)] mod tests;";
    let b = "/// See [`super::d`].\npub(in crate::d) struct B;\n#[cfg(test)] mod tests { use crate::d::D; }\n\
             #[cfg(test)] use crate::d::{D, E}; const T: &str = \"crate::d::D\"; // crate::d::D";
    let found = of_crate(&[
        ("src/lib.rs", lib),
        ("src/a.rs", "use crate::b::T;"),
        ("src/b.rs", b),
        ("src/c.rs", "use crate::a::A; pub fn f() {}"),
        ("src/d.rs", "use crate::c::f;"),
        ("src/tests.rs", "use crate::d::D;"),
    ]);
    assert_eq!(found, [""; 0]);
}
