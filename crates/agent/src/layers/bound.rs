use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use haft_lsp::WriteDiagnostics;
use haft_store::Artifact;
use haft_tool::{Admission, Content, Context, Layer, Next, Outcome, Place};

use super::record::{Wholes, kept_name};
use crate::{
    limits::{MODEL_ROWS, MODEL_TEXT},
    transcript::{Journal, KeptFile},
};

/// Cuts what one call may put into the model's context, keeps the whole and says how to read the rest (SPEC H7). Tools bound their
/// own answers in better words; this is the bound behind them.
pub(crate) struct Bound {
    pub(crate) journal: Arc<Journal>,
    pub(crate) wholes: Wholes,
    /// A directory that the file tools of this conversation may read.
    pub(crate) outputs: PathBuf,
    /// What language servers found too late for the result of the write it is about goes with the next result (SPEC W4).
    pub(crate) diagnostics: Option<WriteDiagnostics>,
}

#[async_trait]
impl Layer for Bound {
    fn place(&self) -> Place {
        Place::Bound
    }

    async fn around(&self, admission: Admission<'_>, context: Context, next: Next<'_>) -> Outcome {
        let mut outcome = next.run(context).await;
        if let Some(late) = self.diagnostics.as_ref().and_then(WriteDiagnostics::late) {
            outcome.content.extend(late.text.map(|text| Content::text(text.trim_end())));
            outcome.structured.extend(late.structured);
        }
        for piece in &mut outcome.content {
            if let Content::Table { rows, .. } = piece
                && rows.len() > MODEL_ROWS
            {
                // The table is a picture of data the program can produce again in parts; the fact that it was cut is part of it.
                let total = rows.len();
                rows.truncate(MODEL_ROWS);
                outcome.structured.insert("rows_total".into(), total.into());
            }
        }
        let texts: usize = outcome
            .content
            .iter()
            .map(|piece| if let Content::Text { text } = piece { text.len() } else { 0 })
            .sum();
        if texts <= MODEL_TEXT {
            return outcome;
        }
        let whole = outcome.all_text();
        let kept = self.keep(&admission.call.id.0, whole.clone()).await;
        if let Ok((artifact, path)) = &kept {
            let call = &admission.call.id;
            let file = kept_name(&self.outputs, path);
            let kept = KeptFile { file, artifact: artifact.clone(), bytes: whole.len() as u64 };
            self.wholes.put(call.clone(), artifact.clone());
            self.wholes.put_file(call.clone(), kept);
        }
        let rest = match kept {
            Ok((_, path)) => format!(
                "the whole is in {}: use `read` with offset, or `search`, on that path",
                path.display()
            ),
            Err(error) => format!("the rest could not be kept ({error}): ask for less at a time"),
        };
        let cut = cut_middle(&whole, &rest);
        outcome.content.retain(|piece| !matches!(piece, Content::Text { .. }));
        outcome.content.insert(0, Content::text(cut));
        outcome
    }
}

impl Bound {
    async fn keep(&self, call: &str, whole: String) -> Result<(haft_store::ArtifactId, PathBuf), String> {
        let name: String =
            call.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(80).collect();
        let path = self.outputs.join(format!("{name}.txt"));
        let (directory, bytes, target) = (self.outputs.clone(), whole.clone().into_bytes(), path.clone());
        let written = tokio::task::spawn_blocking(move || {
            std::fs::create_dir_all(&directory)?;
            std::fs::write(&target, bytes)
        });
        written.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        let artifact = Artifact { mime: "text/plain; charset=utf-8".into(), data: whole.into_bytes() };
        let artifact =
            self.journal.store().put_artifact(artifact).await.map_err(|error| error.to_string())?;
        Ok((artifact, path))
    }
}

/// The beginning and the end of `whole` with a line between them that says what is missing.
fn cut_middle(whole: &str, rest: &str) -> String {
    let half = MODEL_TEXT / 2;
    let head_end = whole.floor_char_boundary(half);
    let head_end = whole[..head_end].rfind('\n').filter(|at| *at > half / 2).map_or(head_end, |at| at + 1);
    let tail_start = whole.ceil_char_boundary(whole.len() - half);
    let tail_start = whole[tail_start..]
        .find('\n')
        .filter(|at| *at < half / 2)
        .map_or(tail_start, |at| tail_start + at + 1);
    let missing = tail_start - head_end;
    format!(
        "{}\n[… {missing} of {} bytes left out here; {rest}]\n{}",
        whole[..head_end].trim_end_matches('\n'),
        whole.len(),
        &whole[tail_start..]
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_left_out_is_counted_right(text in "[a-zé\n]{50000,60000}") {
            prop_assume!(text.len() > MODEL_TEXT);
            let cut = cut_middle(&text, "REST");
            let (head, tail) = cut.split_once("\n[… ").ok_or_else(|| TestCaseError::fail("no mark"))?;
            let (count, tail) = tail.split_once(" of ").ok_or_else(|| TestCaseError::fail("no count"))?;
            let tail = tail.split_once("REST]\n").map_or("", |(_, tail)| tail);
            prop_assert!(text.starts_with(head) && text.ends_with(tail));
            let missing: usize = count.parse().map_err(|_| TestCaseError::fail("no number"))?;
            let trimmed = text.len() - missing - tail.len() - head.len();
            prop_assert!(text[head.len()..head.len() + trimmed].chars().all(|c| c == '\n'));
        }
    }
}
