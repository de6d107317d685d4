/** The functions with which a slash command reaches the conversation and the terminal around it. */
import type { Run } from '../../conversation/run.ts';
import type { AgentChanges, CodingAgent } from '../codingAgent.ts';
import type { TextFormats } from '../formatted/textFormats.ts';
import type { ConversationTerminal } from '../interactive/conversationTerminal.ts';
import type { Style } from '../screen.ts';

export interface CommandPort {
  readonly made: CodingAgent;
  readonly terminal: ConversationTerminal;
  /** The rules that the person has saved since the start. */
  readonly remembered: readonly string[];
  /** Takes a rule out of `remembered`. False if the rule is not in the list. */
  forget(rule: string): boolean;
  say(style: Style, text: string): void;
  watch(run: Run): void;
  formats(): Promise<TextFormats>;
  list(): Promise<void>;
  /** Restores files, rewinds the conversation, or does both. */
  undo(name: 'undo' | 'rewind', argument: string): Promise<void>;
  /** Opens another session, or a new one. */
  swap(choice: string | undefined): Promise<void>;
  /** True while a request is under way; a line then explains that nothing can be changed. */
  isBusy(): boolean;
  /** Opens the same session with another agent. False if a request under way prevented it; a line then explains that. */
  remake(changes: AgentChanges, restartsServers?: boolean): Promise<boolean>;
  /** Closes the session for the work, and opens the one that the work resolves to. */
  reopen(work: () => Promise<string>): Promise<void>;
  /** Sends a message, or steers the request under way. */
  send(text: string): Promise<void>;
}
