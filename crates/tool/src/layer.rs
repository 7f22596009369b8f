use async_trait::async_trait;

use crate::{Call, Context, Outcome, Spec, Surface, Touch, registry::Route};

/// Where a layer stands. The order of the variants is the order of the layers, outermost first; it is written here and
/// nowhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// Writes the call and its outcome into the transcript, refused ones too.
    Record,
    /// Answers `unknown tool: NAME` for what the surface does not see. Built in.
    Ceiling,
    /// Validates the arguments. Built in.
    Arguments,
    /// Guardrail rules and approvals.
    Guard,
    /// One call at a time for tools that are not parallel-safe. Built in.
    Turn,
    /// Cuts large output for the model and keeps the whole.
    Bound,
}

/// A call on its way to the tool, as a layer sees it.
#[derive(Clone, Copy)]
pub struct Admission<'a> {
    /// The call.
    pub call: &'a Call,
    /// Through which surface it came.
    pub surface: &'a Surface,
    /// The tool, if the surface sees one of that name. Layers inside [`Place::Ceiling`] always find one.
    pub spec: Option<&'a Spec>,
    /// What the call would touch. Empty outside [`Place::Arguments`].
    pub touches: &'a [Touch],
}

/// Something that every call passes on its way in and every outcome on its way out.
#[async_trait]
pub trait Layer: Send + Sync {
    /// Where it stands; a registry has at most one layer at each place.
    fn place(&self) -> Place;

    /// Lets the call through with `next.run(context)`, or answers itself.
    async fn around(&self, admission: Admission<'_>, context: Context, next: Next<'_>) -> Outcome;
}

/// The rest of the way to the tool.
pub struct Next<'a> {
    pub(crate) route: &'a Route<'a>,
    pub(crate) from: Option<Place>,
}

impl Next<'_> {
    /// Goes on with the next layer, and at last with the tool.
    pub async fn run(self, context: Context) -> Outcome {
        self.route.step(self.from, context).await
    }
}
