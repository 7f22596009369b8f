use std::{fmt, str::FromStr};

use haft_tool::{Surface, SurfaceKind};
use serde::{Deserialize, Serialize};

/// What a conversation may do at the moment. Only a person changes it (SPEC G2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Everything that is wired, under the guardrails.
    #[default]
    Agent,
    /// Looking only: the ceiling is the read tier.
    Plan,
    /// As agent, and with workers to direct (SPEC V1).
    Vibe,
}

impl Mode {
    /// The surface of the conversation's own agent in this mode.
    pub fn surface(self) -> Surface {
        Surface::of(match self {
            Mode::Agent => SurfaceKind::Agent,
            Mode::Plan => SurfaceKind::Plan,
            Mode::Vibe => SurfaceKind::Vibe,
        })
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Mode::Agent => "agent",
            Mode::Plan => "plan",
            Mode::Vibe => "vibe",
        })
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "agent" => Ok(Mode::Agent),
            "plan" => Ok(Mode::Plan),
            "vibe" => Ok(Mode::Vibe),
            other => Err(format!("`{other}` is not a mode: agent, plan or vibe")),
        }
    }
}
