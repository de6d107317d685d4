/**
 * The questions about waiting calls, asked in the editor and answered by its person. Invariant: only a chosen option that
 * was offered approves. A suspension has at most one open question. The change of a file is shown with its question.
 */
import {
  type AgentContext,
  type PermissionOption,
  RequestError,
  type RequestPermissionResponse,
  type ToolCallContent,
} from '@agentclientprotocol/sdk';
import type { PendingCall } from '../../../machines/internal.ts';
import type { Conversation } from '../../conversation/conversation.ts';
import { thrownMessage } from '../../errors.ts';
import { printableLine, shortened } from '../../printable.ts';
import { isObject } from '../../validation.ts';
import type { CodingAgent } from '../codingAgent.ts';
import { approvalFacts } from '../interactive/approval.ts';
import { callPreview } from '../questions/callPreview.ts';
import { shownCall, textContent } from './toolCallWords.ts';

const BY = 'editor';
const RULES_MAX = 120;
/** A larger file is shown by the changed places only, after the call. */
const FILE_CHARACTERS_MAX = 500_000;

type Answer = 'once' | 'session' | 'kept' | 'reject' | 'cancelled';

export interface QuestionPort {
  readonly made: CodingAgent;
  readonly conversation: Conversation;
  readonly client: Pick<AgentContext, 'request'>;
  /** Resolves when the editor has received all updates so far. */
  updated(): Promise<void>;
  /** Shows the person a text that is not a step of the run. */
  say(text: string): void;
  /** Called if the person cancels the request instead of answering. */
  cancelled(): void;
}

export class EditorQuestions {
  readonly #port: QuestionPort;
  readonly #asked = new Map<string, Promise<void>>();

  constructor(port: QuestionPort) {
    this.#port = port;
  }

  /** Asks about each waiting call that has no open question. `signal` ends the questions without an answer. */
  ask(signal: AbortSignal): void {
    for (const call of this.#port.conversation.pending) {
      const key = `${call.callId} ${call.suspension}`;
      if (this.#asked.has(key)) continue;
      const answer = this.#askAbout(call, signal).finally(() => this.#asked.delete(key));
      this.#asked.set(key, answer);
      // The request that waits for the answers receives the error.
      answer.catch(() => undefined);
    }
  }

  /** Resolves when no question is open. Rejects if a decision could not be made. */
  async answered(): Promise<void> {
    while (this.#asked.size > 0) await Promise.all(this.#asked.values());
  }

  async #askAbout(call: PendingCall, signal: AbortSignal): Promise<void> {
    const { conversation } = this.#port;
    const { rules } = approvalFacts(call.payload);
    const answer = await this.#answer(call, optionsOf(rules), signal);
    if (signal.aborted) return;
    if (answer === 'cancelled') return this.#port.cancelled();
    const { callId, suspension } = call;
    if (typeof answer === 'object' || answer === 'reject') {
      const reason = typeof answer === 'object' ? { reason: answer.reason } : {};
      await conversation.decide({ callId, suspension, by: BY, action: 'deny', ...reason });
      return;
    }
    if (answer !== 'once') await this.#remember(call, answer);
    await conversation.decide({ callId, suspension, by: BY, action: 'approve' });
  }

  async #answer(
    call: PendingCall,
    options: PermissionOption[],
    signal: AbortSignal,
  ): Promise<Answer | { reason: string }> {
    const { client, conversation, updated } = this.#port;
    const { callId: toolCallId, name, args } = call;
    const content = await this.#content(call);
    await updated();
    const toolCall = { toolCallId, status: 'pending' as const, ...shownCall({ name, args }, conversation.cwd) };
    const params = { sessionId: conversation.id, toolCall: { ...toolCall, content }, options };
    try {
      const asking = { cancellationSignal: signal, stopWaitingOnCancel: true };
      const { outcome } = await client.request<RequestPermissionResponse>('session/request_permission', params, asking);
      if (outcome.outcome === 'cancelled') return 'cancelled';
      const chosen = options.find(({ optionId }) => optionId === outcome.optionId);
      if (chosen) return chosen.optionId as Answer;
      return { reason: `the editor answered with ${JSON.stringify(outcome.optionId)}, which was not offered` };
    } catch (error) {
      if (signal.aborted) return 'cancelled';
      if (!(error instanceof RequestError)) throw error;
      return { reason: `the editor could not ask: ${thrownMessage(error)}` };
    }
  }

  /** The change of a file, or a plan, else the reasons of the rules. */
  async #content({ name, args, payload }: PendingCall): Promise<ToolCallContent[]> {
    const { cwd } = this.#port.conversation;
    const plan = name === 'ExitPlanMode' && isObject(args) ? args.plan : undefined;
    if (typeof plan === 'string') return [textContent(plan)];
    const { place, by, parts, runs } = approvalFacts(payload);
    const preview = await callPreview(name, args, { cwd, place }).catch(() => undefined);
    if (preview?.kind === 'new file') {
      return [{ type: 'diff', path: preview.file, oldText: null, newText: preview.content }];
    }
    if (preview?.kind === 'change' && preview.before.length + preview.after.length <= FILE_CHARACTERS_MAX) {
      return [{ type: 'diff', path: preview.file, oldText: preview.before, newText: preview.after }];
    }
    const asked = parts.length > 1 ? parts.filter(({ outcome }) => outcome !== 'allow') : [];
    const lines = [
      ...(by === '' ? [] : [`asked because of: ${by}`]),
      ...asked.map((part) => `- ${part.text} (${part.by})`),
      ...parts.flatMap(({ why }) => (why === undefined ? [] : [why])),
      ...(runs === undefined ? [] : [`would run ${runs}`]),
    ];
    return lines.length === 0 ? [] : [textContent(lines.map(printableLine).join('\n'))];
  }

  /** The decision is valid even if the rules cannot be saved. */
  async #remember({ name, args, payload }: PendingCall, how: 'session' | 'kept'): Promise<void> {
    const { made, conversation, say } = this.#port;
    try {
      await made.permissions.remember(name, args, conversation.cwd);
      if (how === 'kept') await made.keep(approvalFacts(payload).rules);
    } catch (error) {
      say(`the rules could not be kept: ${thrownMessage(error)}`);
    }
  }
}

function optionsOf(rules: readonly string[]): PermissionOption[] {
  const shown = shortened(printableLine(rules.join(', ')), RULES_MAX);
  const always: PermissionOption[] = [
    { optionId: 'session', name: `Always allow in this session: ${shown}`, kind: 'allow_always' },
    { optionId: 'kept', name: `Always allow in this directory: ${shown}`, kind: 'allow_always' },
  ];
  return [
    { optionId: 'once', name: 'Allow once', kind: 'allow_once' },
    ...(rules.length > 0 ? always : []),
    { optionId: 'reject', name: 'Reject', kind: 'reject_once' },
  ];
}
