//! Where capabilities say what.

use serde_json::Value;

/// Where a server's capabilities say that it offers a method.
pub(super) fn static_capability<'a>(capabilities: &'a Value, method: &str) -> Option<&'a Value> {
    let field = match method {
        "textDocument/definition" => "definitionProvider",
        "textDocument/typeDefinition" => "typeDefinitionProvider",
        "textDocument/implementation" => "implementationProvider",
        "textDocument/references" => "referencesProvider",
        "textDocument/hover" => "hoverProvider",
        "textDocument/documentSymbol" => "documentSymbolProvider",
        "workspace/symbol" => "workspaceSymbolProvider",
        "textDocument/codeAction" => "codeActionProvider",
        "textDocument/rename" => "renameProvider",
        "textDocument/diagnostic" => "diagnosticProvider",
        "textDocument/prepareCallHierarchy" => "callHierarchyProvider",
        "workspace/executeCommand" => "executeCommandProvider",
        "textDocument/prepareRename" => {
            let rename = capabilities.get("renameProvider")?;
            return rename.get("prepareProvider");
        }
        "codeAction/resolve" => {
            let action = capabilities.get("codeActionProvider")?;
            return action.get("resolveProvider");
        }
        "textDocument/didSave" => {
            let sync = capabilities.get("textDocumentSync")?;
            return sync.get("save");
        }
        _ => return None,
    };
    capabilities.get(field)
}
