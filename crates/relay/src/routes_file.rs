//! A route table for any API, as a TOML file.

use model::error::Malformed;
use model::route_class::{Route, RouteClass, RouteTable};
use serde::Deserialize;

/// Why a file is no route table.
#[derive(Debug, thiserror::Error)]
pub enum RoutesError {
    /// It is not TOML, or says something this version does not know.
    #[error("{0}")]
    Unreadable(#[from] toml::de::Error),
    /// A line could not work.
    #[error("{method} {path}: {why}")]
    Line {
        /// Its method.
        method: String,
        /// Its path.
        path: String,
        /// What is wrong with it.
        why: Malformed,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    route: Vec<Line>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    method: String,
    path: String,
    class: Class,
    order: Option<String>,
    #[serde(default)]
    barrier: bool,
    #[serde(default)]
    gives_id: bool,
    #[serde(default)]
    allow_fields: Vec<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Class {
    Append,
    Replace,
    Online,
}

/// Reads a table of `[[route]]` lines.
pub fn parse_routes(text: &str) -> Result<RouteTable, RoutesError> {
    let file: File = toml::from_str(text)?;
    let mut routes = Vec::with_capacity(file.route.len());
    for line in file.route {
        let route = Route {
            method: line.method.to_ascii_uppercase(),
            pattern: line.path,
            class: match line.class {
                Class::Append => RouteClass::Append,
                Class::Replace => RouteClass::Replace,
                Class::Online => RouteClass::Online,
            },
            order: line.order,
            barrier: line.barrier,
            gives_id: line.gives_id,
            allowed_fields: line.allow_fields,
        };
        // One by one first, so that the refusal names its line.
        RouteTable::of(vec![route.clone()]).map_err(|why| RoutesError::Line {
            method: route.method.clone(),
            path: route.pattern.clone(),
            why,
        })?;
        routes.push(route);
    }
    RouteTable::of(routes).map_err(|why| RoutesError::Line {
        method: String::new(),
        path: String::new(),
        why,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::route_class::NormalPath;

    const NOTES: &str = r#"
[[route]]
method = "POST"
path = "/notes"
class = "append"

[[route]]
method = "put"
path = "/notes/{id}"
class = "replace"
order = "note:{id}"
"#;

    #[test]
    fn ten_lines_make_a_table() {
        let table = parse_routes(NOTES).unwrap();
        let path = NormalPath::parse("/notes/7").unwrap();
        let found = table.find("PUT", &path).unwrap();
        assert_eq!(found.resource.unwrap().as_str(), "note:7");
        assert_eq!(found.route.class, RouteClass::Replace);
        assert!(table.find("DELETE", &path).is_none());
    }

    #[test]
    fn a_line_that_cannot_work_is_named() {
        let wrong = NOTES.replace("note:{id}", "note:{other}");
        let error = parse_routes(&wrong).unwrap_err().to_string();
        assert!(error.starts_with("PUT /notes/{id}: order must be"), "{error}");
        for wrong in ["", "x = 1", &NOTES.replace("append", "later"), &NOTES.replace("order", "ordre")] {
            assert!(parse_routes(wrong).is_err(), "{wrong}");
        }
    }
}
