use crate::args::AgentArgs;
use crate::exit::Exit;
pub(crate) async fn agent(_args: AgentArgs) -> Exit { Exit::SUCCESS }
