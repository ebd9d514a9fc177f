//! The Prometheus text format.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

type Labels<'a> = &'a [(&'a str, &'a str)];

/// Families of samples, each with its type once and its lines together.
#[derive(Default)]
pub(crate) struct Page {
    families: BTreeMap<&'static str, (&'static str, String)>,
}

impl Page {
    /// A number that only grows.
    pub(crate) fn counter(&mut self, name: &'static str, labels: Labels<'_>, value: u64) {
        self.line(name, "counter", "", labels, &value.to_string());
    }

    /// A number as it is now.
    pub(crate) fn gauge(&mut self, name: &'static str, labels: Labels<'_>, value: f64) {
        self.line(name, "gauge", "", labels, &value.to_string());
    }

    /// How often, and how long altogether.
    pub(crate) fn summary(&mut self, name: &'static str, labels: Labels<'_>, count: u64, sum: Duration) {
        self.line(name, "summary", "_sum", labels, &sum.as_secs_f64().to_string());
        self.line(name, "summary", "_count", labels, &count.to_string());
    }

    /// The whole page.
    pub(crate) fn text(self) -> String {
        let mut text = String::new();
        for (name, (kind, lines)) in self.families {
            // Writing to a string cannot go wrong.
            let _ = write!(text, "# TYPE {name} {kind}\n{lines}");
        }
        text
    }

    fn line(
        &mut self,
        name: &'static str,
        kind: &'static str,
        suffix: &str,
        labels: Labels<'_>,
        value: &str,
    ) {
        let (_, lines) = self.families.entry(name).or_insert_with(|| (kind, String::new()));
        let shown: Vec<String> =
            labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
        let labels = if shown.is_empty() { String::new() } else { format!("{{{}}}", shown.join(",")) };
        let _ = writeln!(lines, "{name}{suffix}{labels} {value}");
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_names_its_type_once_and_escapes_its_labels() {
        let mut page = Page::default();
        page.counter("a_total", &[("mesh", "home")], 1);
        page.gauge("b", &[], 0.5);
        page.counter("a_total", &[("mesh", "a\"b\\c\n")], 2);
        page.summary("c_seconds", &[("endpoint", "/x")], 3, Duration::from_millis(1500));
        assert_eq!(
            page.text(),
            "# TYPE a_total counter\na_total{mesh=\"home\"} 1\na_total{mesh=\"a\\\"b\\\\c\\n\"} 2\n\
             # TYPE b gauge\nb 0.5\n\
             # TYPE c_seconds summary\nc_seconds_sum{endpoint=\"/x\"} 1.5\nc_seconds_count{endpoint=\"/x\"} 3\n"
        );
    }
}
