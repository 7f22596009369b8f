use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Family, Tier};

/// Who looks at the tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SurfaceKind {
    /// The agent of a conversation.
    Agent,
    /// The same agent in plan mode: it may look, not touch (SPEC G2).
    Plan,
    /// The same agent in vibe mode, where it puts workers to work (SPEC V1).
    Vibe,
    /// A read-only subagent (SPEC G3).
    Explorer,
    /// A background worker (SPEC V1).
    Worker,
    /// An outside MCP client, which sees the general tools only (SPEC R5).
    Mcp,
}

impl SurfaceKind {
    /// Every kind, in the order in which they are listed for people.
    pub const ALL: [SurfaceKind; 6] = [
        SurfaceKind::Agent,
        SurfaceKind::Plan,
        SurfaceKind::Vibe,
        SurfaceKind::Explorer,
        SurfaceKind::Worker,
        SurfaceKind::Mcp,
    ];
}

impl fmt::Display for SurfaceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            SurfaceKind::Agent => "agent",
            SurfaceKind::Plan => "plan",
            SurfaceKind::Vibe => "vibe",
            SurfaceKind::Explorer => "explorer",
            SurfaceKind::Worker => "worker",
            SurfaceKind::Mcp => "mcp",
        })
    }
}

/// A view of the registry: which kind of reader, and the highest tier it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surface {
    kind: SurfaceKind,
    ceiling: Tier,
}

impl Surface {
    /// The agent's surface: everything that is wired.
    pub fn agent() -> Self {
        Self::of(SurfaceKind::Agent)
    }

    /// Plan mode: read tier only.
    pub fn plan() -> Self {
        Self::of(SurfaceKind::Plan)
    }

    /// The surface of `kind` with the ceiling that belongs to it.
    pub fn of(kind: SurfaceKind) -> Self {
        let ceiling = match kind {
            SurfaceKind::Plan | SurfaceKind::Explorer => Tier::Read,
            SurfaceKind::Agent | SurfaceKind::Vibe | SurfaceKind::Worker | SurfaceKind::Mcp => Tier::Exec,
        };
        Surface { kind, ceiling }
    }

    /// The same surface with its ceiling lowered to `tier`; a ceiling is never raised.
    pub fn capped(self, tier: Tier) -> Self {
        Surface { ceiling: self.ceiling.min(tier), ..self }
    }

    /// Who looks.
    pub fn kind(&self) -> SurfaceKind {
        self.kind
    }

    /// The highest tier shown.
    pub fn ceiling(&self) -> Tier {
        self.ceiling
    }

    /// Whether a tool of this tier and family exists as far as this surface can tell.
    pub fn sees(&self, tier: Tier, family: Family) -> bool {
        let shown = match family {
            Family::General => true,
            Family::Workshop => self.kind != SurfaceKind::Mcp,
            Family::Others => !matches!(self.kind, SurfaceKind::Mcp | SurfaceKind::Explorer),
            Family::Workers => self.kind == SurfaceKind::Vibe,
        };
        shown && tier <= self.ceiling
    }
}
