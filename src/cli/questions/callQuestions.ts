/**
 * The questions about waiting calls: shows a call, opens its arguments in an editor, and carries out the decision.
 * Invariant: one call at a time is asked about. A decision counts only for the call that was shown.
 */
import type { PendingCall } from '../../../machines/internal.ts';
import type { Conversation } from '../../conversation/conversation.ts';
import { thrownText } from '../../errors.ts';
import { printableLine } from '../../printable.ts';
import { isObject } from '../../validation.ts';
import type { CodingAgent } from '../codingAgent.ts';
import type { TextFormats } from '../formatted/textFormats.ts';
import { approvalFacts, approvalLines, isPlanCall, type ShownChange } from '../interactive/approval.ts';
import type { ConversationTerminal } from '../interactive/conversationTerminal.ts';
import type { AskedCall, PromptDecision, PromptEvent } from '../interactive/prompt.machine.ts';
import type { TextLine } from '../interactive/textRows.ts';
import type { Style } from '../screen.ts';
import { callPreview, fileChange } from './callPreview.ts';

const BY = 'terminal';
/** The rows of a screen that a question needs besides a change. */
const OTHER_ROWS = 8;
const FOLDED_MIN = 8;

/** The conversation's side of a question. */
export interface PromptPort {
  made(): CodingAgent;
  readonly terminal: ConversationTerminal;
  send(event: PromptEvent): void;
  say(style: Style, text: string): void;
  formats(): Promise<TextFormats>;
  /** A shown change will be the same in the result of the call. */
  changeShown(callId: string, patch: string): void;
}

/** The parts of a question besides the arguments. */
interface ShownParts {
  readonly change?: ShownChange | undefined;
  readonly wider?: readonly string[];
  readonly plan?: readonly TextLine[] | undefined;
}

export class CallQuestions {
  /** The rules that "always" has saved since the start. */
  readonly remembered: string[] = [];
  readonly #port: PromptPort;
  /** The call of the current question, with its suspension. */
  #asked: string | undefined;
  /** Rules of a call that are allowed in this session and could not be kept. */
  #unkept: { callId: string; rules: readonly string[] } | undefined;

  constructor(port: PromptPort) {
    this.#port = port;
  }

  get isAsking(): boolean {
    return this.#asked !== undefined;
  }

  /** Takes a rule out of those that "always" saved. False if the rule is not among them. */
  forget(rule: string): boolean {
    const at = this.remembered.indexOf(rule);
    if (at >= 0) this.remembered.splice(at, 1);
    return at >= 0;
  }

  /** Forgets the question of another conversation. */
  reset(): void {
    this.#asked = undefined;
  }

  /** Asks about the first waiting call, or ends the question if none waits. */
  update(conversation: Conversation): void {
    const [call] = conversation.pending;
    const key = call && `${call.callId} ${call.suspension}`;
    if (key === this.#asked) return;
    this.#asked = key;
    if (!call) return this.#port.send({ type: 'DECIDED' });
    const isChange = fileChange(call.name, call.args) !== undefined;
    // A call that needs neither a file nor the rules again is shown at once.
    if (!isChange && !isPlanCall(call) && approvalFacts(call.payload).rules.length === 0) return this.#ask(call, {});
    void Promise.all([
      isChange ? this.#change(call, conversation) : undefined,
      this.#widerRules(call, conversation.cwd),
      this.#planLines(call),
    ]).then(([change, wider, plan]) => {
      if (this.#asked === key) this.#ask(call, { change, wider, plan });
    });
  }

  /** Wider rules that "always" may save in place of the literal ones. */
  async #widerRules({ name, args, payload }: PendingCall, cwd: string): Promise<readonly string[]> {
    if (approvalFacts(payload).rules.length === 0) return [];
    return this.#port.made().permissions.widened(name, args, cwd);
  }

  /** A plan as Markdown. Undefined for another call, and on a terminal that shows Markdown as its source. */
  async #planLines(call: PendingCall): Promise<readonly TextLine[] | undefined> {
    const { terminal, formats } = this.#port;
    const columns = terminal.textColumns;
    const plan = isPlanCall(call) && isObject(call.args) ? call.args.plan : undefined;
    if (typeof plan !== 'string' || columns === undefined) return undefined;
    const { MarkdownStream } = await formats();
    const stream = new MarkdownStream(() => columns);
    return [...stream.push(`${plan}\n`), ...stream.end()];
  }

  async decide({ callId, suspension }: AskedCall, decision: PromptDecision, conversation: Conversation): Promise<void> {
    const { say } = this.#port;
    try {
      const call = conversation.pending.find((each) => each.callId === callId);
      if (decision.action === 'approve' && decision.always && call)
        await this.#remember(call, conversation.cwd, decision);
      const { action } = decision;
      const answer = action === 'approve' ? { action } : decision;
      const receipt = await conversation.decide({ callId, suspension, by: BY, ...answer });
      if (receipt !== 'applied') say('yellow', `the decision came to nothing: ${receipt}`);
    } catch (error) {
      say('red', thrownText(error));
      this.#asked = undefined;
    }
  }

  /** Opens the arguments in the editor, or puts them into the line if there is none. */
  async edit({ callId, args }: AskedCall, conversation: Conversation): Promise<void> {
    const { terminal, send, say } = this.#port;
    const editor = process.env.VISUAL || process.env.EDITOR;
    if (!editor || !terminal.handOver) return terminal.fill(JSON.stringify(args));
    const { editedArguments } = await import('./argumentEditor.ts');
    const call = conversation.pending.find((each) => each.callId === callId);
    if (!call) return;
    const edited = await terminal.handOver(() => editedArguments(call.name, args, editor));
    if (edited.kind === 'edited') {
      await this.#show({ ...call, args: edited.args }, conversation);
      return send({ type: 'EDITED', args: edited.args });
    }
    say('dim', `· ${edited.kind === 'failed' ? edited.why : 'nothing was changed'}`);
    send({ type: 'KEPT' });
  }

  /** Shows the call again, all of it. */
  async view({ callId, args }: AskedCall, conversation: Conversation): Promise<void> {
    const call = conversation.pending.find((each) => each.callId === callId);
    if (call) await this.#show({ ...call, args }, conversation, Number.POSITIVE_INFINITY);
  }

  async #show(call: PendingCall, conversation: Conversation, linesMax?: number): Promise<void> {
    const change = await this.#change(call, conversation);
    const isOther = !conversation.pending.some(({ callId, args }) => callId === call.callId && args === call.args);
    // The rules have judged the arguments of the model only.
    const payload = isOther ? undefined : call.payload;
    const shown = { ...call, ...(isOther && { reason: 'edited' }), payload: payload ?? null };
    this.#port.terminal.commit(approvalLines(shown, change && { ...change, linesMax: linesMax ?? change.linesMax }));
    this.#markShown(call.callId, change);
  }

  #markShown(callId: string, { preview }: Partial<ShownChange> = {}): void {
    if (preview?.kind === 'change') this.#port.changeShown(callId, preview.patch);
    else if (preview?.kind === 'new file') this.#port.changeShown(callId, preview.content);
  }

  #ask(call: PendingCall, { change, wider = [], plan }: ShownParts): void {
    const { terminal, send } = this.#port;
    const { callId, suspension, args, payload } = call;
    terminal.commit(approvalLines(call, change, wider, plan));
    this.#markShown(callId, change);
    const canAlways = approvalFacts(payload).rules.length > 0;
    const canWiden = wider.length > 0;
    const asked = { callId, suspension, args, canAlways, canWiden, isPlan: isPlanCall(call) };
    send({ type: 'ASKED', call: asked, draft: terminal.text });
  }

  async #change({ name, args, payload }: PendingCall, { cwd }: Conversation): Promise<ShownChange | undefined> {
    try {
      const preview = await callPreview(name, args, { cwd, place: approvalFacts(payload).place });
      if (!preview) return undefined;
      const { terminal, formats } = this.#port;
      const linesMax = Math.max(FOLDED_MIN, terminal.rows - OTHER_ROWS);
      return { preview, formats: await formats(), linesMax };
    } catch {
      // The arguments are shown instead.
      return undefined;
    }
  }

  async #remember(
    { callId, name, args }: PendingCall,
    cwd: string,
    { always: how, isWide }: { always?: 'session' | 'kept'; isWide?: boolean },
  ): Promise<void> {
    const { made, say } = this.#port;
    const { permissions } = made();
    const wider = isWide ? await permissions.widened(name, args, cwd) : [];
    const added = await permissions.remember(name, args, cwd, wider.length > 0 ? wider : undefined);
    this.remembered.push(...added);
    for (const rule of added) say('dim', `· allowed from now on: ${printableLine(rule)}`);
    const rules = added.length === 0 && this.#unkept?.callId === callId ? this.#unkept.rules : added;
    if (how === 'session' || rules.length === 0) return;
    this.#unkept = { callId, rules };
    say('dim', `· kept for this directory in ${printableLine(await made().keep(rules))}`);
    this.#unkept = undefined;
  }
}
