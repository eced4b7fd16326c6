//! Dependencies of the workspace's packages run one way.

use std::fs;
use std::path::Path;

/// The layer of each package: it may depend on packages of lower layers only.
const LAYERS: [(&str, u8); 9] = [
    ("backend-core", 0),
    ("backend-memory", 1),
    ("conformance-tests", 1),
    ("stateline", 2),
    ("simulation", 3),
    ("cli", 3),
    ("benches", 3),
    ("fuzz", 3),
    ("xtask", 3),
];

pub(crate) fn check(root: &Path, faults: &mut Vec<String>) -> Result<(), String> {
    let path = root.join("Cargo.toml");
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    check_members(&text, faults);
    for (package, _) in LAYERS {
        let path = if package == "stateline" {
            root.to_owned()
        } else {
            root.join(package)
        };
        let path = path.join("Cargo.toml");
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        check_manifest(package, &text, faults);
    }
    Ok(())
}

/// A package without a layer would be checked by nobody.
fn check_members(text: &str, faults: &mut Vec<String>) {
    let list = text
        .split_once("members = [")
        .and_then(|(_, rest)| rest.split_once(']'))
        .map_or("", |(list, _)| list);
    for member in list.split('"').skip(1).step_by(2) {
        if LAYERS.iter().all(|(package, _)| *package != member) {
            faults.push(format!(
                "Cargo.toml: `{member}` has no layer in xtask/src/tidy/packages.rs"
            ));
        }
    }
}

fn check_manifest(package: &str, text: &str, faults: &mut Vec<String>) {
    let layer = |name: &str| {
        LAYERS
            .iter()
            .find(|(other, _)| *other == name)
            .map(|(_, layer)| *layer)
    };
    let own = layer(package).expect("the package is one of those listed");
    let mut section = "";
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
        }
        // What the workspace only gives names to is nobody's dependency yet.
        if section.starts_with("workspace") {
            continue;
        }
        // `[dependencies]` and a line for each, or `[dependencies.name]`; also those of a build
        // script and of a target.
        let table = section.rsplit_once("dependencies.");
        let name = match table {
            Some((kind, name)) if !kind.ends_with("dev-") && line.starts_with('[') => name,
            None if section.ends_with("dependencies") && !section.ends_with("dev-dependencies") => {
                line.split(['.', ' ', '=']).next().unwrap_or_default()
            }
            _ => continue,
        };
        if layer(name).is_some_and(|other| other >= own) {
            faults.push(format!(
                "{package}/Cargo.toml: depends on {name}, which does not lie below it"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependency_upwards_is_found() {
        let mut faults = Vec::new();
        let text = "[dependencies]\nbackend-core.workspace = true\nstateline = { path = \"..\" }\n";
        check_manifest("backend-memory", text, &mut faults);
        assert_eq!(faults.len(), 1, "{faults:?}");
        faults.clear();
        for text in [
            "[dependencies.stateline]\npath = \"..\"",
            "[build-dependencies]\ncli.workspace = true",
            "[target.'cfg(unix)'.dependencies]\nbenches = \"1\"",
        ] {
            check_manifest("backend-memory", text, &mut faults);
            assert_eq!(faults.len(), 1, "{text}: {faults:?}");
            faults.clear();
        }
        check_manifest(
            "backend-memory",
            "[dev-dependencies]\nconformance-tests.workspace = true",
            &mut faults,
        );
        assert!(faults.is_empty(), "{faults:?}");
    }

    #[test]
    fn package_without_a_layer_is_found() {
        let mut faults = Vec::new();
        check_members("members = [\"cli\", \"backend-new\"]\n[lints]", &mut faults);
        assert!(
            faults.len() == 1 && faults[0].contains("backend-new"),
            "{faults:?}"
        );
    }
}
