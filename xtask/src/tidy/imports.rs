//! Files of one crate that import each other, directly or round a circle.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::source::SourceFile;

/// How often a name is followed from one re-export to the next.
const REEXPORTS_MAX: u32 = 8;

pub(crate) fn check(files: &[SourceFile], faults: &mut Vec<String>) {
    let mut crates: BTreeMap<&str, Vec<&SourceFile>> = BTreeMap::new();
    for file in files.iter().filter(|file| !file.is_test()) {
        let name = file.path.split_once("/src/").map(|(name, _)| name);
        let facade = file.path.starts_with("src/").then_some("");
        if let Some(name) = name.or(facade) {
            crates.entry(name).or_default().push(file);
        }
    }
    for files in crates.values() {
        for circle in circles(&graph(files)) {
            faults.push(format!(
                "{}: import each other: {}",
                circle[0],
                circle.join(", ")
            ));
        }
    }
}

/// Module paths, such as `table::node`, of the files of a crate.
fn module_of(path: &str) -> String {
    let inside = path.strip_prefix("src/").unwrap_or(path);
    let (_, inside) = inside.split_once("/src/").unwrap_or(("", inside));
    let inside = inside.trim_end_matches(".rs").trim_end_matches("/mod");
    if inside == "lib" || inside == "main" {
        String::new()
    } else {
        inside.replace('/', "::")
    }
}

/// File to files that it imports from.
fn graph<'f>(files: &[&'f SourceFile]) -> BTreeMap<&'f str, BTreeSet<&'f str>> {
    let modules: BTreeMap<String, &SourceFile> = files
        .iter()
        .map(|file| (module_of(&file.path), *file))
        .collect();
    let mut graph = BTreeMap::new();
    for (module, file) in &modules {
        let imports = uses(file)
            .iter()
            .filter_map(|path| resolve(path, module, &modules, REEXPORTS_MAX))
            .filter(|target| *target != file.path)
            .collect();
        graph.insert(&*file.path, imports);
    }
    graph
}

/// The paths that a file imports, braces taken apart.
fn uses(file: &SourceFile) -> Vec<String> {
    let mut paths = Vec::new();
    let mut statement = String::new();
    for code in file.code.iter().take(file.code_lines()) {
        let begins = code.trim_start();
        // What a module re-exports lies below it, and is no import of its own.
        if statement.is_empty() && !begins.starts_with("use ") {
            continue;
        }
        statement.push_str(code.trim());
        if statement.ends_with(';') {
            let path = statement.trim_start_matches("use ").trim_end_matches(';');
            expand("", path, &mut paths);
            statement.clear();
        }
    }
    paths
}

fn expand(prefix: &str, path: &str, paths: &mut Vec<String>) {
    let Some((head, group)) = path.split_once('{') else {
        let path = path.split(" as ").next().unwrap_or(path);
        paths.push(format!("{prefix}{}", path.trim()));
        return;
    };
    let prefix = format!("{prefix}{}", head.trim());
    let group = group.trim_end().strip_suffix('}').unwrap_or(group);
    let mut depth = 0;
    let mut start = 0;
    for (index, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expand(&prefix, group[start..index].trim(), paths);
                start = index + 1;
            }
            _ => {}
        }
    }
    if !group[start..].trim().is_empty() {
        expand(&prefix, group[start..].trim(), paths);
    }
}

/// The file that a path of `module` leads to. A name that `mod.rs` re-exports leads to where it
/// is from as far as its module's `pub use` says.
fn resolve<'f>(
    path: &str,
    module: &str,
    modules: &BTreeMap<String, &'f SourceFile>,
    reexports_left: u32,
) -> Option<&'f str> {
    let mut parts: Vec<&str> = path.split("::").collect();
    let mut base: Vec<&str> = match parts[0] {
        "crate" => Vec::new(),
        "self" => module.split("::").filter(|part| !part.is_empty()).collect(),
        "super" => {
            let mut above: Vec<&str> = module.split("::").collect();
            above.pop();
            above
        }
        // The name of a module below this one, or of another crate.
        child => {
            let mut below: Vec<&str> = module.split("::").filter(|p| !p.is_empty()).collect();
            below.push(child);
            if !modules.contains_key(&below.join("::")) {
                return None;
            }
            below
        }
    };
    parts.remove(0);
    while parts.first() == Some(&"super") {
        base.pop();
        parts.remove(0);
    }
    base.extend(parts);
    let mut length = base.len();
    while length > 0 && !modules.contains_key(&base[..length].join("::")) {
        length -= 1;
    }
    let file = modules.get(&base[..length].join("::"))?;
    let Some(name) = base.get(length) else {
        // The module itself.
        return Some(&file.path);
    };
    let here = base[..length].join("::");
    let found = reexports_left
        .checked_sub(1)
        .and_then(|left| reexported(file, name, &here, modules, left));
    found.or(Some(&file.path))
}

/// Where `name` of the module in `file` comes from, if it is re-exported there.
fn reexported<'f>(
    file: &SourceFile,
    name: &str,
    module: &str,
    modules: &BTreeMap<String, &'f SourceFile>,
    reexports_left: u32,
) -> Option<&'f str> {
    let mut statement = String::new();
    for code in &file.code {
        let begins = code.trim_start();
        if statement.is_empty() && !(begins.starts_with("pub") && begins.contains("use ")) {
            continue;
        }
        statement.push_str(code.trim());
        if !statement.ends_with(';') {
            continue;
        }
        let (_, path) = statement.split_once("use ").unwrap_or(("", ""));
        let mut paths = Vec::new();
        expand("", path.trim_end_matches(';'), &mut paths);
        statement.clear();
        let Some(found) = paths
            .iter()
            .find(|path| path.rsplit("::").next() == Some(name))
        else {
            continue;
        };
        let is_rooted = ["crate::", "self::", "super::"]
            .iter()
            .any(|root| found.starts_with(root));
        let path = if is_rooted {
            found.clone()
        } else {
            format!("self::{found}")
        };
        return resolve(&path, module, modules, reexports_left);
    }
    None
}

/// Groups of files that reach each other, found by reachability: crates are small.
fn circles(graph: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<Vec<String>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> = graph
        .keys()
        .map(|start| {
            let mut seen = BTreeSet::new();
            let mut open = vec![*start];
            while let Some(file) = open.pop() {
                for next in graph.get(file).into_iter().flatten() {
                    if seen.insert(*next) {
                        open.push(next);
                    }
                }
            }
            (*start, seen)
        })
        .collect();
    let mut circles: Vec<Vec<String>> = Vec::new();
    for (file, reached) in &reach {
        if !reached.contains(file) {
            continue;
        }
        let circle: Vec<String> = reached
            .iter()
            .filter(|other| reach.get(*other).is_some_and(|back| back.contains(file)))
            .map(|other| (*other).to_owned())
            .collect();
        if !circles.contains(&circle) {
            circles.push(circle);
        }
    }
    circles
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> = files
            .iter()
            .map(|(path, text)| SourceFile::of(path, text))
            .collect();
        let mut faults = Vec::new();
        check(&files, &mut faults);
        faults
    }

    #[test]
    fn circle_of_two_is_found() {
        let found = faults(&[
            ("a/src/lib.rs", "mod x;\nmod y;"),
            ("a/src/x.rs", "use crate::y::Y;"),
            ("a/src/y.rs", "use crate::{\n    x::{X, Z},\n};"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("a/src/x.rs, a/src/y.rs"), "{found:?}");
    }

    #[test]
    fn circle_through_a_reexport_is_found() {
        let found = faults(&[
            ("a/src/lib.rs", "mod m;"),
            ("a/src/m/mod.rs", "mod p;\nmod q;\npub use p::P;"),
            ("a/src/m/p.rs", "use super::q::Q;"),
            ("a/src/m/q.rs", "use crate::m::P;"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn circle_through_a_module_is_found() {
        let found = faults(&[
            ("a/src/lib.rs", "mod x;\nmod y;"),
            ("a/src/x.rs", "use crate::y;"),
            ("a/src/y.rs", "use super::x;"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        let found = faults(&[
            ("a/src/lib.rs", "mod m;"),
            ("a/src/m/mod.rs", "mod p;\nuse p::P;\npub struct M;"),
            ("a/src/m/p.rs", "use super::M;"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        let found = faults(&[
            ("src/lib.rs", "mod x;\nuse x::X;"),
            ("src/x.rs", "use crate::Y;"),
        ]);
        assert_eq!(found.len(), 1, "the facade too: {found:?}");
    }

    #[test]
    fn layers_are_fine() {
        let found = faults(&[
            ("a/src/lib.rs", "mod m;\nmod n;\npub use m::P;"),
            ("a/src/m/mod.rs", "mod p;\npub use p::P;"),
            ("a/src/m/p.rs", "use crate::n::N;"),
            (
                "a/src/n.rs",
                "#[cfg(test)]\nmod tests {\n    use crate::m::P;\n}",
            ),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }
}
