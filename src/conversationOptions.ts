/** What the public face of a conversation is made of. Rule: the conversation is open, and brought to rest, before it gets here. */
import type { AgentOptions } from './agentOptions.ts';
import type { Policies } from './options.ts';
import type { Runtime } from './runtime/runtime.ts';

export interface ConversationOptions {
  id: string;
  cwd: string;
  runtime: Runtime;
  policies: Policies;
  newId(): string;
  authorize: AgentOptions['authorize'] | undefined;
  /** Whose sub-agent this is, where somebody else opened it: it can be read, and nothing else. */
  keeper?: string | undefined;
  closed(): void;
}
