/**
 * What a simulation may add to the agent that is simulated by default. Rule: the tape decides all that it does, and it
 * compares what it sees with the durable log, as the simulated tools do.
 */
import type { Json } from '../../../machines/internal.ts';
import type { Conversation } from '../../../src/conversation/conversation.ts';
import type { InspectObserver } from '../../../src/options.ts';
import type { Plugin } from '../../../src/plugins/plugin.ts';
import type { Tool, ToolContext } from '../../../src/tools/tool.ts';

/** What the agent of one process is made with besides its own tools and plugins. */
export interface Parts {
  readonly tools?: readonly Tool[];
  readonly plugins?: readonly Plugin[];
  readonly inspect?: InspectObserver;
}

/** An execution of a simulated tool that begins. */
export interface Beginning extends Pick<ToolContext, 'conversationId' | 'callId' | 'decision'> {
  readonly name: string;
  readonly args: Json;
  /** How the tool is declared. */
  readonly traits: { readonly readOnly?: true; readonly needsApproval?: true };
}

export interface Equipment {
  parts(): Parts;
  /** Compares an execution with what was answered about its call. */
  begins?(beginning: Beginning): void;
  /** Does one thing of its own with the open conversation. */
  act?(conversation: Conversation): void;
  /** The conversation is being closed by the host. */
  closing?(conversation: Conversation): void;
  /** The process has died; the next one begins when this resolves. */
  crashed?(): Promise<void>;
  /** Compares what it knows with a conversation at rest. */
  check?(conversation: Conversation): void;
  /** The life is over: nothing that it opened may stay. */
  over?(): Promise<void>;
}
