/**
 * One session of an editor: a conversation of the program's agent, and the request under way. Invariant: one request at a
 * time. A request is answered once, after all of its updates. A cancel ends it in any state.
 */

import type { ClientCapabilities, PromptResponse, SessionModeState } from '@agentclientprotocol/sdk';
import { type AgentContext, type ContentBlock, RequestError } from '@agentclientprotocol/sdk';
import { standingEntries } from '../../../machines/internal.ts';
import type { Conversation } from '../../conversation/conversation.ts';
import type { Run } from '../../conversation/run.ts';
import type { RunResult } from '../../index.ts';
import { PERMISSION_MODES, type PermissionMode } from '../../permissions/verdict.ts';
import { type CodingAgent, mustWorkIn } from '../codingAgent.ts';
import { tellEquipment } from '../commands/equipmentLines.ts';
import { EditorQuestions } from './editorQuestions.ts';
import { promptContent } from './promptContent.ts';
import { runFailure } from './protocolErrors.ts';
import { SessionUpdates } from './sessionUpdates.ts';
import { UpdateQueue } from './updateQueue.ts';

type StopReason = PromptResponse['stopReason'];

/** The editor's side of a session. */
export interface EditorClient {
  readonly client: Pick<AgentContext, 'notify' | 'request'>;
  readonly capabilities: ClientCapabilities | undefined;
}

const MODES: { readonly [mode in PermissionMode]: readonly [name: string, description: string] } = {
  default: ['Ask', 'Reading is allowed. Changes and commands are asked about.'],
  acceptEdits: ['Accept edits', 'Files of the working directory are changed unasked. Commands are asked about.'],
  plan: ['Plan', 'Only reading is allowed.'],
  dontAsk: ['Never ask', 'What would be asked about is denied.'],
  bypass: ['Allow everything', 'Everything is allowed but what rules deny or ask about.'],
};

export class EditorSession {
  readonly #made: CodingAgent;
  readonly #conversation: Conversation;
  readonly #updates: SessionUpdates;
  readonly #queue: UpdateQueue;
  readonly #questions: EditorQuestions;
  /** The request under way. */
  #turn: AbortController | undefined;
  #run: Run | undefined;
  /** The mode that the editor shows. */
  #shownMode: PermissionMode;
  readonly #release: () => void;
  #isEquipmentReported = false;
  #isClosed = false;

  constructor(made: CodingAgent, conversation: Conversation, { client, capabilities }: EditorClient) {
    this.#made = made;
    this.#conversation = conversation;
    const { id: sessionId, cwd } = conversation;
    this.#shownMode = made.permissions.modeOf(sessionId);
    const notices = capabilities?.session?.notices != null;
    const { contextWindow } = made.model;
    const earlier = conversation.log();
    this.#updates = new SessionUpdates({ cwd, contextWindow, notices }, earlier);
    this.#queue = new UpdateQueue((update) => client.notify('session/update', { sessionId, update }));
    const port = { made, conversation, client, cancelled: () => this.cancel(), updated: () => this.#queue.drained() };
    this.#questions = new EditorQuestions({ ...port, say: (text) => this.#say(text) });
    const log = conversation.log$(earlier.length).subscribe((entry) => {
      this.#queue.push(this.#updates.entry(entry));
      this.#showMode();
      // After all entries of an append.
      if (entry.type === 'tool-suspended') queueMicrotask(() => this.#ask());
    });
    const live = conversation.live$.subscribe((signal) => {
      this.#queue.push(this.#updates.signal(signal));
      // A call of a sub-agent waits.
      if (signal.path) queueMicrotask(() => this.#ask());
    });
    this.#release = () => {
      log.unsubscribe();
      live.unsubscribe();
    };
  }

  get isBusy(): boolean {
    return this.#turn !== undefined;
  }

  get modes(): SessionModeState {
    const availableModes = PERMISSION_MODES.map((id) => {
      const [name, description] = MODES[id];
      return { id, name, description };
    });
    return { currentModeId: this.#made.permissions.modeOf(this.#conversation.id), availableModes };
  }

  /** Throws ConfigurationError for another directory than that of the session. */
  mustWorkIn(cwd: string): void {
    mustWorkIn(this.#conversation, cwd);
  }

  /** Applies from the next call on, also within a request. Throws RequestError for an unknown mode. */
  setMode(modeId: string): void {
    const mode = PERMISSION_MODES.find((each) => each === modeId);
    if (!mode) {
      throw RequestError.invalidParams({ modeId }, `expected one of the modes ${PERMISSION_MODES.join(', ')}`);
    }
    this.#made.permissions.setMode(mode);
    this.#shownMode = mode;
  }

  /** Shows the messages and calls so far that the model still receives. */
  async replay(): Promise<void> {
    for (const entry of standingEntries(this.#conversation.log())) this.#queue.push(this.#updates.replayed(entry));
    this.#queue.push(this.#updates.usage());
    await this.#queue.drained();
  }

  /** Resolves with the end of the request. Rejects with RequestError. `signal` cancels it. */
  async prompt(blocks: readonly ContentBlock[], signal: AbortSignal): Promise<StopReason> {
    if (this.#turn) {
      throw RequestError.invalidRequest(undefined, 'a prompt is under way in this session: cancel it first');
    }
    const turn = new AbortController();
    this.#turn = turn;
    this.#tellEquipment();
    // The signal also fires when the connection closes. A call that waits for a decision then keeps waiting.
    const cancel = (): void => {
      if (signal.reason instanceof RequestError) this.cancel();
    };
    signal.addEventListener('abort', cancel);
    try {
      const content = await promptContent(blocks, this.#conversation.cwd);
      // A call that waits since an earlier request is asked about first.
      if (this.#conversation.status === 'waiting') await this.#toEnd(undefined, turn.signal);
      if (turn.signal.aborted) return 'cancelled';
      const result = await this.#toEnd(this.#conversation.send(content, { signal: turn.signal }), turn.signal);
      await this.#queue.drained();
      return turn.signal.aborted ? 'cancelled' : stopReasonOf(result, this.#lastFlag());
    } finally {
      signal.removeEventListener('abort', cancel);
      await this.#queue.drained();
      this.#turn = undefined;
      this.#run = undefined;
    }
  }

  /** Ends the request under way. Without one it does nothing. */
  cancel(): void {
    if (!this.#turn || this.#turn.signal.aborted) return;
    this.#turn.abort();
    void this.#run?.cancel();
    void this.#conversation.cancel().catch(() => undefined);
  }

  /** Ends the request under way. A call that waits for a decision keeps waiting. */
  async close(): Promise<void> {
    this.#isClosed = true;
    try {
      await this.#conversation.close();
    } finally {
      // A question of the request would wait for ever.
      this.#turn?.abort();
      this.#release();
      await this.#made.close();
    }
  }

  /** Resumes and asks until the cycle has ended. */
  async #toEnd(first: Run | undefined, signal: AbortSignal): Promise<RunResult | undefined> {
    this.#run = first;
    let result: RunResult | undefined;
    for (;;) {
      if (this.#run) result = await this.#run.result;
      this.#ask();
      await this.#questions.answered();
      const { status, pending } = this.#conversation;
      if (this.#isClosed || status === 'idle' || status === 'error') return result;
      if (signal.aborted) {
        await this.#conversation.cancel();
        return result;
      }
      if (status === 'waiting' && pending.length > 0) continue;
      this.#run = this.#conversation.resume();
    }
  }

  /** An approved plan ends plan mode. */
  #showMode(): void {
    const mode = this.#made.permissions.modeOf(this.#conversation.id);
    if (mode === this.#shownMode) return;
    this.#shownMode = mode;
    this.#queue.push([{ sessionUpdate: 'current_mode_update', currentModeId: mode }]);
  }

  #ask(): void {
    if (this.#turn && !this.#turn.signal.aborted) this.#questions.ask(this.#turn.signal);
  }

  #lastFlag(): string | undefined {
    const entries = this.#conversation.log();
    for (let at = entries.length - 1; at >= 0; at -= 1) {
      const entry = entries[at];
      if (entry?.type === 'agent-output' && entry.item.type === 'assistant') return entry.item.flag;
    }
    return undefined;
  }

  /** Notes once which files of the user and the project are ignored, and which MCP servers failed. */
  #tellEquipment(): void {
    if (this.#isEquipmentReported) return;
    this.#isEquipmentReported = true;
    tellEquipment(this.#made.equipment, (note) => this.#say(note));
  }

  #say(text: string): void {
    if (!this.#isClosed) this.#queue.push([this.#updates.note(text)]);
  }
}

const STOPS: { readonly [cause: string]: StopReason } = { max_turns: 'max_turn_requests', max_tokens: 'max_tokens' };

/** Throws RequestError for a run that failed. */
function stopReasonOf(result: RunResult | undefined, flag: string | undefined): StopReason {
  if (!result || result.reason === 'interrupted') return 'cancelled';
  if (result.reason === 'completed') return flag === 'refusal' ? 'refusal' : 'end_turn';
  const stop = result.cause === undefined ? undefined : STOPS[result.cause];
  if (stop) return stop;
  throw runFailure(result);
}
