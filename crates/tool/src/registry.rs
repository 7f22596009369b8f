use std::{collections::BTreeMap, panic::AssertUnwindSafe, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use serde::Serialize;
use tokio::sync::Mutex;

use crate::{
    Admission, AnyTool, Call, Context, Layer, Next, Origin, Outcome, Place, Spec, Surface, SurfaceKind, Tier,
    Tool, ToolError, Touch, erase,
};

/// Which part of Haft a tool belongs to. Outside MCP clients see the general tools only (SPEC R5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// Files and the shell (SPEC H1).
    General,
    /// The tools that Haft exists for (SPEC R4).
    Workshop,
    /// The tools by which a conversation turns to a person or a helper; a read-only helper has none of them.
    Others,
    /// The tools that steer workers; they exist only while vibe mode is on (SPEC R2).
    Workers,
}

/// The tools of a run, and the one way to call them.
pub struct Registry {
    entries: Vec<Entry>,
    index: BTreeMap<String, usize>,
    absent: Vec<Absent>,
    layers: BTreeMap<Place, Arc<dyn Layer>>,
    /// Held during a call of a tool that is not parallel-safe. tokio's mutex is fair: such calls run in the order in which they came.
    turn: Arc<Mutex<()>>,
    /// The same for calls that a kernel's cell makes. Their turn lies within that of the call whose cell it is, so that they wait for each
    /// other only: waiting for the outer turn they would wait for themselves.
    inner_turn: Mutex<()>,
}

struct Entry {
    tool: Arc<dyn AnyTool>,
    family: Family,
}

struct Absent {
    name: String,
    tier: Tier,
    family: Family,
    why: String,
}

/// A line of `haft tools --explain`: a known tool, whether this run has it, and who sees it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explained {
    /// The tool.
    pub name: String,
    /// Its tier.
    pub tier: Tier,
    /// Whether this run has it.
    pub registered: bool,
    /// Why not, if not.
    pub why_not: Option<String>,
    /// The surfaces that see it, or would if it were registered.
    pub surfaces: Vec<SurfaceKind>,
}

/// Collects what a run has. Wiring is explicit: what is not added here does not exist for the run.
#[derive(Default)]
pub struct RegistryBuilder {
    entries: Vec<Entry>,
    absent: Vec<Absent>,
    layers: BTreeMap<Place, Arc<dyn Layer>>,
    turn: Option<Arc<Mutex<()>>>,
}

impl RegistryBuilder {
    /// Registers a tool.
    pub fn tool<T: Tool>(self, tool: T, family: Family) -> Self {
        self.any(erase(tool), family)
    }

    /// Registers a tool whose argument type is already erased. A second tool of the same name replaces the first.
    pub fn any(mut self, tool: Arc<dyn AnyTool>, family: Family) -> Self {
        self.entries.retain(|entry| entry.tool.spec().name != tool.spec().name);
        self.absent.retain(|absent| absent.name != tool.spec().name);
        self.entries.push(Entry { tool, family });
        self
    }

    /// Notes a known tool that this run does not have, and why (SPEC R2).
    pub fn absent(
        mut self,
        name: impl Into<String>,
        tier: Tier,
        family: Family,
        why: impl Into<String>,
    ) -> Self {
        self.absent.push(Absent { name: name.into(), tier, family, why: why.into() });
        self
    }

    /// Adds a layer; a later one at the same place replaces the earlier.
    pub fn layer(mut self, layer: impl Layer + 'static) -> Self {
        self.layers.insert(layer.place(), Arc::new(layer));
        self
    }

    /// Shares the turn of calls that are not parallel-safe with other registries of the same conversation.
    pub fn turn(mut self, turn: Arc<Mutex<()>>) -> Self {
        self.turn = Some(turn);
        self
    }

    /// The registry. Tools are listed in the order in which they were added, always the same, since a model's cached prefix
    /// depends on it.
    pub fn build(self) -> Registry {
        let index =
            self.entries.iter().enumerate().map(|(at, entry)| (entry.tool.spec().name.clone(), at)).collect();
        Registry {
            entries: self.entries,
            index,
            absent: self.absent,
            layers: self.layers,
            turn: self.turn.unwrap_or_default(),
            inner_turn: Mutex::default(),
        }
    }
}

impl Registry {
    /// Starts an empty registry.
    pub fn builder() -> RegistryBuilder {
        RegistryBuilder::default()
    }

    /// The tools that `surface` sees.
    pub fn list(&self, surface: &Surface) -> Vec<&Spec> {
        self.entries
            .iter()
            .filter(|entry| surface.sees(entry.tool.spec().tier, entry.family))
            .map(|entry| entry.tool.spec())
            .collect()
    }

    /// Every known tool: registered or why not, and which surfaces see it.
    pub fn explain(&self) -> Vec<Explained> {
        let surfaces = |tier, family| {
            SurfaceKind::ALL
                .into_iter()
                .filter(|kind| Surface::of(*kind).sees(tier, family))
                .collect::<Vec<_>>()
        };
        let registered = self.entries.iter().map(|entry| {
            let spec = entry.tool.spec();
            Explained {
                name: spec.name.clone(),
                tier: spec.tier,
                registered: true,
                why_not: None,
                surfaces: surfaces(spec.tier, entry.family),
            }
        });
        let absent = self.absent.iter().map(|absent| Explained {
            name: absent.name.clone(),
            tier: absent.tier,
            registered: false,
            why_not: Some(absent.why.clone()),
            surfaces: surfaces(absent.tier, absent.family),
        });
        registered.chain(absent).collect()
    }

    /// Leads a call through the layers to its tool (SPEC R7). A panic of a tool is an error of that call alone.
    pub async fn call(&self, surface: &Surface, call: Call, context: Context) -> Outcome {
        let entry = self
            .index
            .get(&call.tool)
            .map(|at| &self.entries[*at])
            .filter(|entry| surface.sees(entry.tool.spec().tier, entry.family));
        let context = Context {
            call: call.id.clone(),
            progress: context.progress.for_call(call.id.clone()),
            ..context
        };
        let checked = entry.map(|entry| entry.tool.check(&call.arguments));
        let touches = match (entry, &checked) {
            (Some(entry), Some(Ok(()))) => entry.tool.touches(&call.arguments),
            _ => Vec::new(),
        };
        let refusal = match checked {
            None => Some(format!("unknown tool: {}", call.tool)),
            Some(Err(error)) => Some(error.to_string()),
            Some(Ok(())) => None,
        };
        let route = Route {
            registry: self,
            call: &call,
            surface,
            tool: entry.map(|entry| entry.tool.as_ref()),
            refusal: refusal.as_deref(),
            touches: &touches,
        };
        route.step(None, context).await
    }
}

/// One call's way through the registry.
pub(crate) struct Route<'a> {
    registry: &'a Registry,
    call: &'a Call,
    surface: &'a Surface,
    tool: Option<&'a dyn AnyTool>,
    /// What [`Place::Ceiling`] or [`Place::Arguments`] answers instead of letting the call through.
    refusal: Option<&'a str>,
    touches: &'a [Touch],
}

/// The places in their order.
const ORDER: [Place; 6] =
    [Place::Record, Place::Ceiling, Place::Arguments, Place::Guard, Place::Turn, Place::Bound];

impl Route<'_> {
    /// Goes on behind `from`; from the beginning if there is none.
    pub(crate) fn step(&self, from: Option<Place>, context: Context) -> BoxFuture<'_, Outcome> {
        async move {
            let rest = ORDER.iter().copied().filter(|place| from.is_none_or(|from| *place > from));
            for place in rest {
                match place {
                    Place::Ceiling | Place::Arguments => {
                        if let Some(refusal) = self.refusal {
                            return Outcome::error(refusal);
                        }
                    }
                    Place::Turn if self.tool.is_some_and(|tool| !tool.spec().parallel) => {
                        let turn = match self.call.origin {
                            Origin::Cell => &self.registry.inner_turn,
                            _ => self.registry.turn.as_ref(),
                        };
                        let turn = tokio::select! {
                            biased;
                            () = context.cancel.cancelled() => return ToolError::Cancelled.into(),
                            turn = turn.lock() => turn,
                        };
                        let outcome = self.step(Some(place), context).await;
                        drop(turn);
                        return outcome;
                    }
                    Place::Turn => {}
                    Place::Record | Place::Guard | Place::Bound => {
                        if let Some(layer) = self.registry.layers.get(&place) {
                            let admission = Admission {
                                call: self.call,
                                surface: self.surface,
                                spec: self.tool.map(AnyTool::spec),
                                touches: if place > Place::Arguments { self.touches } else { &[] },
                            };
                            return layer
                                .around(admission, context, Next { route: self, from: Some(place) })
                                .await;
                        }
                    }
                }
            }
            self.reach(context).await
        }
        .boxed()
    }

    async fn reach(&self, context: Context) -> Outcome {
        let Some(tool) = self.tool else {
            return Outcome::error(format!("unknown tool: {}", self.call.tool));
        };
        if context.cancel.is_cancelled() {
            return ToolError::Cancelled.into();
        }
        let call = AssertUnwindSafe(tool.call(self.call.arguments.clone(), &context)).catch_unwind();
        match call.await {
            Ok(Ok(output)) => output.into(),
            Ok(Err(error)) => error.into(),
            Err(panic) => {
                let text = panic
                    .downcast_ref::<&str>()
                    .map(|text| (*text).to_owned())
                    .or_else(|| panic.downcast_ref::<String>().cloned())
                    .unwrap_or_else(|| "no message".to_owned());
                ToolError::Bug(format!("{} panicked: {text}", self.call.tool)).into()
            }
        }
    }
}
