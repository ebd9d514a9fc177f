//! Rows into frames: at most so many rows and so many bytes each.

use model::limits;
use serde::Serialize;

/// `{"type":"receipts","rows":[` … `]}` with room to spare.
const FRAME_OVERHEAD_BYTES: usize = 64;

/// Frames of type `kind` with `rows` in order. A row alone is always under the bound: a body is 64 KiB, and its
/// worst spelling six times that.
pub(crate) fn frames<R: Serialize>(kind: &str, rows: &[R]) -> Vec<String> {
    let mut frames = Vec::new();
    let mut texts: Vec<String> = Vec::new();
    let mut bytes = FRAME_OVERHEAD_BYTES;
    for row in rows {
        let text = serde_json::to_string(row).expect("rows hold only what JSON can say");
        let full = texts.len() == limits::FRAME_MESSAGES_MAX || bytes + text.len() > limits::FRAME_BYTES_MAX;
        if full && !texts.is_empty() {
            frames.push(frame(kind, &texts));
            texts.clear();
            bytes = FRAME_OVERHEAD_BYTES;
        }
        bytes += text.len() + 1;
        texts.push(text);
    }
    if !texts.is_empty() {
        frames.push(frame(kind, &texts));
    }
    frames
}

fn frame(kind: &str, texts: &[String]) -> String {
    format!(r#"{{"type":"{kind}","rows":[{}]}}"#, texts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::link::ToNode;

    #[test]
    fn frames_are_bounded_in_rows_and_bytes_and_keep_the_order() {
        let small: Vec<u32> = (0..150).collect();
        let texts = frames("mail", &small);
        assert_eq!(texts.len(), 3);
        assert!(texts[0].starts_with(r#"{"type":"mail","rows":[0,1,2,"#) && texts[2].ends_with("148,149]}"));
        let large = vec!["x".repeat(400_000); 5];
        let texts = frames("mail", &large);
        assert_eq!(texts.len(), 3);
        assert!(texts.iter().all(|text| text.len() <= limits::FRAME_BYTES_MAX));
        assert!(frames::<u32>("mail", &[]).is_empty());
    }

    #[test]
    fn the_other_end_reads_them() {
        let id = "01890a5d-ac96-774b-bcce-b302099a8057";
        let row = serde_json::json!({"id": id, "recipient": id, "rung": "delivered"});
        let texts = frames("acked", &[row]);
        assert!(matches!(ToNode::parse(&texts[0]), Ok(ToNode::Acked(rows)) if rows.rows.len() == 1));
    }
}
