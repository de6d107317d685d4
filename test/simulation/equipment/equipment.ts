/**
 * The additions of a simulation to the default agent. Invariant: the tape determines everything that it does. It
 * compares its observations with the durable log, like the simulated tools.
 */
import type { Json } from '../../../machines/internal.ts';
import type { Conversation } from '../../../src/conversation/conversation.ts';
import type { InspectObserver } from '../../../src/options.ts';
import type { Plugin } from '../../../src/plugins/plugin.ts';
import type { Tool, ToolContext } from '../../../src/tools/tool.ts';

/** The parts of one process's agent besides its own tools and plugins. */
export interface Parts {
  readonly tools?: readonly Tool[];
  readonly plugins?: readonly Plugin[];
  readonly inspect?: InspectObserver;
}

/** The start of a simulated tool's execution. */
export interface Beginning extends Pick<ToolContext, 'conversationId' | 'callId' | 'decision'> {
  readonly name: string;
  readonly args: Json;
  /** The declaration of the tool. */
  readonly traits: { readonly readOnly?: true; readonly needsApproval?: true };
}

export interface Equipment {
  parts(): Parts;
  /** Compares an execution with the answers about its call. */
  begins?(beginning: Beginning): void;
  /** Performs one act on the open conversation. */
  act?(conversation: Conversation): void;
  /** Called when the host closes the conversation. */
  closing?(conversation: Conversation): void;
  /** Called after the process has died. The next one starts when the promise resolves. */
  crashed?(): Promise<void>;
  /** Compares its records with a conversation at rest. */
  check?(conversation: Conversation): void;
  /** Called at the end of the life. Everything that it opened must be closed. */
  over?(): Promise<void>;
}
