//! Which file of a crate imports which.
//!
//! The modules are followed from the crate's root file, as the compiler does. What is behind
//! `#[cfg(test)]` is skipped, so files of tests are never read. A path is resolved to the file that
//! defines its name. If a module on the way only re-exports the name (`pub use child::Thing`), the
//! import leads to the file behind it, and the module's own `use` is the module's import. If the
//! name can't be found (a macro defined it), the import leads to the last module of the path.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Longest chain of `use` items that re-export a name; a longer one would be a loop.
const HANDED_ON_MAX: u32 = 8;

/// First words of paths that leave the module they are in.
const ROOTS: [&str; 3] = ["crate", "self", "super"];

/// Keywords that begin an item with a name.
const ITEMS: [&str; 9] = [
    "const", "enum", "fn", "mod", "static", "struct", "trait", "type", "union",
];

/// Words that can precede such a keyword, and items without a name.
const BEFORE_ITEMS: [&str; 7] = ["async", "extern", "impl", "let", "pub", "unsafe", "use"];

/// One file that imports another, with the paths by which it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Import {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) paths: Vec<String>,
}

/// The files of a crate, and their imports as indices into the files.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) files: Vec<String>,
    pub(super) imports: Vec<Import>,
}

impl Graph {
    /// Reads the crate whose root file is `crate_root`. `read` returns `None` for a file that
    /// doesn't exist.
    pub(super) fn of(crate_root: &str, read: &dyn Fn(&str) -> Option<String>) -> Self {
        let (folder, _) = crate_root.rsplit_once('/').expect("a file in a folder");
        let mut reader = Reader {
            read,
            files: Vec::new(),
            modules: Vec::new(),
        };
        let text = read(crate_root).unwrap_or_else(|| panic!("{crate_root} can't be read"));
        reader.file(crate_root.to_owned(), &text, None, folder.to_owned());
        let mut found: BTreeMap<(usize, usize), BTreeSet<String>> = BTreeMap::new();
        for (index, module) in reader.modules.iter().enumerate() {
            let uses = module.uses.iter().map(|used| &used.path);
            for path in uses.chain(&module.paths) {
                let Some(to) = reader.definer(index, path, 0) else {
                    continue;
                };
                if to != module.file {
                    found
                        .entry((module.file, to))
                        .or_default()
                        .insert(path.join("::"));
                }
            }
        }
        Self {
            files: reader.files,
            imports: found
                .into_iter()
                .map(|((from, to), paths)| Import {
                    from,
                    to,
                    paths: paths.into_iter().collect(),
                })
                .collect(),
        }
    }
}

struct Use {
    path: Vec<String>,
    /// The name under which other modules find it: `None` for a glob, and in a function's body.
    name: Option<String>,
    is_glob: bool,
}

struct Module {
    parent: Option<usize>,
    file: usize,
    children: BTreeMap<String, usize>,
    items: BTreeSet<String>,
    uses: Vec<Use>,
    paths: Vec<Vec<String>>,
}

struct Reader<'a> {
    read: &'a dyn Fn(&str) -> Option<String>,
    files: Vec<String>,
    modules: Vec<Module>,
}

impl Reader<'_> {
    /// Reads a file as a module; the files of its child modules are in `folder`.
    fn file(&mut self, path: String, text: &str, parent: Option<usize>, folder: String) -> usize {
        let tokens: TokenStream = text
            .parse()
            .unwrap_or_else(|error| panic!("{path} is no Rust: {error}"));
        self.files.push(path);
        let module = self.module(parent, self.files.len() - 1);
        self.tokens(
            module,
            &tokens.into_iter().collect::<Vec<_>>(),
            &folder,
            true,
        );
        module
    }

    fn module(&mut self, parent: Option<usize>, file: usize) -> usize {
        self.modules.push(Module {
            parent,
            file,
            children: BTreeMap::new(),
            items: BTreeSet::new(),
            uses: Vec::new(),
            paths: Vec::new(),
        });
        self.modules.len() - 1
    }

    /// Reads tokens of a module; `is_top` if they are its items and not a part of one.
    fn tokens(&mut self, module: usize, tokens: &[TokenTree], folder: &str, is_top: bool) {
        let mut at = 0;
        let mut file = None;
        while let Some(token) = tokens.get(at) {
            if let Some(attribute) = attribute(&tokens[at..]) {
                at += 2;
                if is_for_tests(&attribute) {
                    at += item_length(&tokens[at..]);
                }
                file = path_in(&attribute).or(file);
                continue;
            }
            at += match token {
                // The path in `pub(in crate::a)` restricts visibility, and imports nothing.
                TokenTree::Ident(word) if word == "pub" && is_restricted(&tokens[at..]) => 2,
                TokenTree::Group(group) => {
                    let inner: Vec<_> = group.stream().into_iter().collect();
                    self.tokens(module, &inner, folder, false);
                    1
                }
                TokenTree::Ident(word) if word == "mod" => {
                    self.child(module, &tokens[at..], folder, file.take())
                }
                TokenTree::Ident(word) if word == "use" => {
                    self.used(module, &tokens[at + 1..], is_top)
                }
                TokenTree::Ident(_) => {
                    if is_top && let Some(item) = item_name(&tokens[at..]) {
                        self.modules[module].items.insert(item);
                    }
                    // A macro's `$crate` means the crate of its caller.
                    let is_start = at == 0 || !ends_in(&tokens[..at], '$');
                    let path = path_at(&tokens[at..]);
                    let length = 3 * path.len() - 2;
                    let leads_away = ROOTS.contains(&path[0].as_str());
                    if is_start && leads_away && path.len() > 1 {
                        self.modules[module].paths.push(path);
                    }
                    length
                }
                _ => 1,
            };
        }
    }

    /// Reads `mod name;` or `mod name { … }`, and returns its length in tokens.
    fn child(
        &mut self,
        module: usize,
        tokens: &[TokenTree],
        folder: &str,
        file: Option<String>,
    ) -> usize {
        let (Some(TokenTree::Ident(name)), Some(body)) = (tokens.get(1), tokens.get(2)) else {
            return 1;
        };
        let name = name.to_string();
        let child = match body {
            TokenTree::Group(group) => {
                let child = self.module(Some(module), self.modules[module].file);
                let inner: Vec<_> = group.stream().into_iter().collect();
                self.tokens(child, &inner, &format!("{folder}/{name}"), true);
                child
            }
            _ => {
                let own = self.files[self.modules[module].file].clone();
                let candidates = match file {
                    Some(file) => {
                        let (folder, _) = own.rsplit_once('/').expect("a file in a folder");
                        vec![format!("{folder}/{file}")]
                    }
                    None => vec![
                        format!("{folder}/{name}.rs"),
                        format!("{folder}/{name}/mod.rs"),
                    ],
                };
                let (path, text) = candidates
                    .into_iter()
                    .find_map(|path| (self.read)(&path).map(|text| (path, text)))
                    .unwrap_or_else(|| panic!("{own}: no file for `mod {name};`"));
                let folder = path
                    .strip_suffix("/mod.rs")
                    .or_else(|| path.strip_suffix(".rs"))
                    .unwrap_or(&path)
                    .to_owned();
                self.file(path, &text, Some(module), folder)
            }
        };
        self.modules[module].children.insert(name, child);
        3
    }

    /// Reads what follows `use`, and returns the item's length in tokens.
    fn used(&mut self, module: usize, tokens: &[TokenTree], is_top: bool) -> usize {
        let end = tokens
            .iter()
            .position(|token| is_punct(token, ';'))
            .unwrap_or(0);
        let mut found = Vec::new();
        branches(&tokens[..end], &[], &mut found);
        for mut used in found {
            if !is_top {
                used.name = None;
                used.is_glob = false;
            }
            self.modules[module].uses.push(used);
        }
        1 + end
    }

    /// The file that defines what `path` names, seen from `module`. `None` if another crate does.
    fn definer(&self, module: usize, path: &[String], depth: u32) -> Option<usize> {
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => 0,
            "self" => module,
            "super" => self.modules[module].parent?,
            child => *self.modules[module].children.get(child)?,
        };
        while let Some((next, further)) = rest.split_first() {
            match next.as_str() {
                "super" => at = self.modules[at].parent?,
                "self" => {}
                name => match self.modules[at].children.get(name) {
                    Some(child) => at = *child,
                    None => return Some(self.file_of(at, rest, depth)),
                },
            }
            rest = further;
        }
        Some(self.modules[at].file)
    }

    /// The file that defines the first name of `rest`, which is found in a module.
    fn file_of(&self, module: usize, rest: &[String], depth: u32) -> usize {
        let own = self.modules[module].file;
        self.handed_on(module, rest, depth).unwrap_or(own)
    }

    /// The file behind a name that a module re-exports; `None` if it defines the name itself, or
    /// doesn't know it.
    fn handed_on(&self, module: usize, rest: &[String], depth: u32) -> Option<usize> {
        let found = &self.modules[module];
        let (name, further) = rest.split_first()?;
        if found.items.contains(name) || depth >= HANDED_ON_MAX {
            return None;
        }
        let full = |used: &Use, rest: &[String]| [&used.path, rest].concat();
        let named = found
            .uses
            .iter()
            .find(|used| used.name.as_ref() == Some(name));
        if let Some(used) = named {
            return self.definer(module, &full(used, further), depth + 1);
        }
        found
            .uses
            .iter()
            .filter(|used| used.is_glob)
            .find_map(|used| {
                let globbed = self.module_at(module, &used.path)?;
                let other = &self.modules[globbed];
                match other.items.contains(name) || other.children.contains_key(name) {
                    true => self.definer(module, &full(used, rest), depth + 1),
                    false => self.handed_on(globbed, rest, depth + 1),
                }
            })
    }

    /// The module that a path leads to if it consists of modules only.
    fn module_at(&self, module: usize, path: &[String]) -> Option<usize> {
        path.iter()
            .try_fold(module, |at, name| match name.as_str() {
                "crate" => Some(0),
                "self" => Some(at),
                "super" => self.modules[at].parent,
                child => self.modules[at].children.get(child).copied(),
            })
    }
}

fn is_restricted(tokens: &[TokenTree]) -> bool {
    let Some(TokenTree::Group(group)) = tokens.get(1) else {
        return false;
    };
    matches!(group.stream().into_iter().next(), Some(TokenTree::Ident(word)) if word == "in")
}

fn is_punct(token: &TokenTree, wanted: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == wanted)
}

fn ends_in(tokens: &[TokenTree], wanted: char) -> bool {
    tokens.last().is_some_and(|token| is_punct(token, wanted))
}

fn attribute(tokens: &[TokenTree]) -> Option<Vec<TokenTree>> {
    match tokens {
        [hash, TokenTree::Group(group), ..]
            if is_punct(hash, '#') && group.delimiter() == Delimiter::Bracket =>
        {
            Some(group.stream().into_iter().collect())
        }
        _ => None,
    }
}

fn is_for_tests(attribute: &[TokenTree]) -> bool {
    let text: String = attribute.iter().map(ToString::to_string).collect();
    let text = text.replace(' ', "");
    text == "cfg(test)" || text.starts_with("cfg(all(test,")
}

fn path_in(attribute: &[TokenTree]) -> Option<String> {
    match attribute {
        [TokenTree::Ident(key), _, TokenTree::Literal(file)] if key == "path" => {
            Some(file.to_string().trim_matches('"').to_owned())
        }
        _ => None,
    }
}

/// Tokens of the item, field, variant, arm or statement that begins here.
fn item_length(tokens: &[TokenTree]) -> usize {
    let mut is_item = false;
    let mut is_begun = false;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Ident(word) if !is_begun => {
                let word = word.to_string();
                is_item = ITEMS.contains(&word.as_str()) || BEFORE_ITEMS.contains(&word.as_str());
                is_begun = true;
            }
            // A body, but not a list of `use` or a value.
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                let goes_on = tokens.get(at + 1).is_some_and(|next| is_punct(next, ';'));
                if !goes_on {
                    return at + 1;
                }
            }
            token if is_punct(token, ';') || (!is_item && is_punct(token, ',')) => return at + 1,
            _ => {}
        }
    }
    tokens.len()
}

fn item_name(tokens: &[TokenTree]) -> Option<String> {
    match tokens {
        [TokenTree::Ident(keyword), TokenTree::Ident(name), ..]
            if ITEMS.contains(&keyword.to_string().as_str()) =>
        {
            Some(name.to_string())
        }
        [TokenTree::Ident(keyword), _, TokenTree::Ident(name), ..] if keyword == "macro_rules" => {
            Some(name.to_string())
        }
        _ => None,
    }
}

/// The words of a path that begins here, as far as `::` joins them.
fn path_at(tokens: &[TokenTree]) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = tokens;
    while let [TokenTree::Ident(word), further @ ..] = rest {
        words.push(word.to_string());
        match further {
            [one, two, next @ ..] if is_punct(one, ':') && is_punct(two, ':') => rest = next,
            _ => break,
        }
    }
    words
}

/// Splits the tree of a `use` item: one path for each name.
fn branches(tokens: &[TokenTree], before: &[String], found: &mut Vec<Use>) {
    for branch in tokens.split(|token| is_punct(token, ',')) {
        let words = path_at(branch);
        let path = [before, &words].concat();
        match branch.last() {
            Some(TokenTree::Group(group)) => {
                let inner: Vec<_> = group.stream().into_iter().collect();
                branches(&inner, &path, found);
            }
            Some(TokenTree::Ident(name)) => found.push(Use {
                // `as` gives another name; `{self}` is the module's.
                name: match name == "self" {
                    true => before.last().cloned(),
                    false => Some(name.to_string()),
                },
                path,
                is_glob: false,
            }),
            Some(last) if is_punct(last, '*') => found.push(Use {
                path,
                name: None,
                is_glob: true,
            }),
            _ => {}
        }
    }
}
