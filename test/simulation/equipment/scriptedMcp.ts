/**
 * The tools of a scripted MCP server in simulated lives. Invariant: the tape determines when the server fails, hangs,
 * asks, dies or returns. Each received call has its start in a log, and each question gets its own call's decision.
 */
import { InMemoryTransport } from '@modelcontextprotocol/client';
import type { Json } from '../../../machines/internal.ts';
import type { Conversation } from '../../../src/conversation/conversation.ts';
import { RunchartError } from '../../../src/errors.ts';
import { type McpTools, mcpTools } from '../../../src/mcp/mcpTools.ts';
import { SECRET } from '../../../src/testing/simulation/world/simulatedModel.ts';
import type { SimulatedStore } from '../../../src/testing/simulation/world/simulatedStore.ts';
import type { CheckedWorld } from '../checks/checkedWorld.ts';
import { sameJson } from '../checks/sameJson.ts';
import type { Equipment, Parts } from './equipment.ts';

interface Message {
  id?: number;
  method?: string;
  params?: { name?: string; arguments?: Json; requestId?: number };
  result?: { action?: string };
}

/** A call at the server without an answer yet. */
interface OpenCall {
  readonly name: string;
  readonly args: Json;
  readonly end: InMemoryTransport;
  /** The questions that the server asked during the call, the latest last. */
  readonly questions: string[];
  /** The latest question has no answer. */
  waits: boolean;
  /** It ran during a question that the client cannot assign, so its own questions may go to another call. */
  isMistaken: boolean;
}

const FAULTS = ['errs', 'refuses', 'hangs', 'dies', 'late', 'asksTwice'] as const;
type Fault = (typeof FAULTS)[number];
const PREFIX = 'mcp__sim__';
const READING: ReadonlySet<string> = new Set(['look']);
const inputSchema = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };
const TOOLS = [{ name: 'look', annotations: { readOnlyHint: true } }, { name: 'set' }, { name: 'order' }].map(
  (tool) => ({ ...tool, description: `A simulated tool, ${tool.name}.`, inputSchema }),
);

export class ScriptedMcp implements Equipment {
  readonly #world: CheckedWorld;
  readonly #store: SimulatedStore;
  readonly #fault: number;
  #tools: McpTools | undefined;
  /** The open connections on the server's side, with the process of each. */
  readonly #ends = new Map<InMemoryTransport, number>();
  /** The calls without an answer, by connection and id. */
  readonly #calls = new Map<InMemoryTransport, Map<number, OpenCall>>();
  /** The questions by the id of their request. */
  readonly #asked = new Map<number, { question: string; answered(action: string): void }>();
  #questions = 0;
  #isOver = false;
  /** The process that connected last. */
  #connectedIn: number | undefined;

  private constructor(world: CheckedWorld, store: SimulatedStore) {
    this.#world = world;
    this.#store = store;
    this.#fault = world.tape.pick([0.1, 0.3, 0.6]);
  }

  static async started(world: CheckedWorld, store: SimulatedStore): Promise<ScriptedMcp> {
    const server = new ScriptedMcp(world, store);
    await server.#begin();
    return server;
  }

  async #begin(): Promise<void> {
    const { processId } = this.#world;
    this.#tools = await mcpTools({ sim: { transport: () => this.#connect(processId) } });
  }

  parts(): Parts {
    return { tools: this.#tools?.tools ?? [] };
  }

  crashed(): Promise<void> {
    return this.#begin();
  }

  #connect(processId: number): InMemoryTransport {
    const world = this.#world;
    // The queued work of a dead process never reaches the server.
    if (processId !== world.processId || this.#isOver) throw new Error('the process is dead');
    // The first connection of a process lists the tools, without which there is no agent.
    const isFirst = this.#connectedIn !== world.processId;
    this.#connectedIn = world.processId;
    if (!isFirst && world.fault('mcp-unreachable', this.#fault)) throw new Error(`no way there, ${SECRET}`);
    const [client, end] = InMemoryTransport.createLinkedPair();
    this.#ends.set(end, world.processId);
    this.#calls.set(end, new Map());
    end.onmessage = (message) => this.#hears(end, message as unknown as Message);
    end.onclose = () => {
      this.#ends.delete(end);
      this.#calls.delete(end);
    };
    void end.start();
    return client;
  }

  #send(end: InMemoryTransport, message: object): void {
    if (this.#ends.has(end)) void end.send({ jsonrpc: '2.0', ...message } as never);
  }

  #hears(end: InMemoryTransport, { id = -1, method, params = {}, result }: Message): void {
    const serverInfo = { name: 'simulated', version: '1' };
    const capabilities = { tools: {} };
    switch (method) {
      case 'initialize':
        return this.#send(end, { id, result: { protocolVersion: '2025-06-18', capabilities, serverInfo } });
      case 'tools/list':
        return this.#send(end, { id, result: { tools: TOOLS } });
      case 'tools/call':
        return void this.#called(end, id, params.name ?? '', params.arguments ?? null);
      case 'notifications/cancelled':
        this.#world.count('mcp-cancelled');
        this.#calls.get(end)?.delete(params.requestId ?? -1);
        return;
      case undefined:
        return this.#asked.get(id)?.answered(result?.action ?? '');
    }
  }

  async #called(end: InMemoryTransport, id: number, name: string, args: Json): Promise<void> {
    const world = this.#world;
    if (this.#ends.get(end) !== world.processId) return;
    world.reach('mcp', name);
    this.#checkStart(name, args);
    const call: OpenCall = { name, args, end, questions: [], waits: false, isMistaken: false };
    this.#calls.get(end)?.set(id, call);
    const fault = world.fault('mcp', this.#fault) ? world.tape.pick(FAULTS) : undefined;
    if (fault) world.count(`mcp-${fault}`);
    if (fault === 'hangs') return;
    await world.wait('tool');
    if (fault === 'dies') return void end.close();
    const wasCancelled = !this.#calls.get(end)?.has(id);
    if (wasCancelled && fault !== 'late') return;
    const action = await this.#asks(call, fault);
    this.#calls.get(end)?.delete(id);
    if (fault === 'refuses') return this.#send(end, { id, error: { code: -32000, message: `no, by ${SECRET}` } });
    const text = `server said ${name} ${action} ${SECRET}`;
    this.#send(end, { id, result: { content: [{ type: 'text', text }], isError: fault === 'errs' } });
  }

  /** Asks a person several times within this call, and returns the last answer. */
  async #asks(call: OpenCall, fault: Fault | undefined): Promise<string> {
    const times = fault === 'asksTwice' ? 2 : call.name === 'order' ? 1 : 0;
    let action = 'done';
    for (let time = 0; time < times && action !== 'cancel'; time++) action = await this.#ask(call);
    return action;
  }

  async #ask(call: OpenCall): Promise<string> {
    this.#questions += 1;
    const id = 100_000 + this.#questions;
    const question = `question ${this.#questions} about ${call.name}`;
    call.questions.push(question);
    const asked = new Promise<string>((answered) => this.#asked.set(id, { question, answered }));
    const requestedSchema = { type: 'object', properties: {} };
    this.#send(call.end, { id, method: 'elicitation/create', params: { message: question, requestedSchema } });
    const isAssignable = this.#isAssignable(call);
    if (!isAssignable) for (const open of this.#calls.get(call.end)?.values() ?? []) open.isMistaken = true;
    call.waits = true;
    const action = await asked;
    call.waits = false;
    this.#world.reach('mcp', `question ${action}`);
    this.#checkAnswer(call, question, action, isAssignable);
    return action;
  }

  /**
   * Returns true if the client can assign a question to its call. It cannot for a cancelled call. It also cannot for a
   * read-only call beside one that may change something, because questions then go to the other call.
   */
  #isAssignable(call: OpenCall): boolean {
    const open = [...(this.#calls.get(call.end)?.values() ?? [])];
    if (!open.includes(call) || open.some(({ isMistaken }) => isMistaken)) return false;
    return !READING.has(call.name) || open.every(({ name, waits }) => READING.has(name) || waits);
  }

  /** Checks that a call reaches the server only after its start. */
  #checkStart(name: string, args: Json): void {
    const started = [...this.#store.logs.keys()].some((id) =>
      [...this.#world.watchOf(id).calls.calls.values()].some(
        (call) => call.name === PREFIX + name && call.status === 'started' && sameJson(call.args, args),
      ),
    );
    this.#world.check(started, 'I9', () => `the server is called for ${name}, and no log has the start of such a call`);
  }

  /** Checks that the log contains the question at its call, and that the answer is the decision of that call. */
  #checkAnswer({ name, args }: OpenCall, question: string, action: string, isAssignable: boolean): void {
    const world = this.#world;
    for (const id of this.#store.logs.keys()) {
      const place = this.#store
        .logOf(id)
        .find((entry) => entry.type === 'tool-suspended' && asks(entry.payload, question));
      if (place?.type !== 'tool-suspended') continue;
      const call = this.#world.watchOf(id).calls.calls.get(place.callId);
      if (!call) continue;
      // An edit gives the call other arguments and cancels the question.
      const isOwn = call.name === PREFIX + name && (action === 'cancel' || sameJson(call.args, args));
      world.check(
        isOwn || !isAssignable,
        'MCP',
        () => `${question} is asked for ${place.callId}, a call of ${call.name}`,
      );
      const decision = call.decisions.get(place.suspension);
      const due = decision && (decision.action === 'deny' ? 'decline' : 'accept');
      const fits = action === 'cancel' || action === due;
      world.check(fits, 'MCP', () => `${question} is answered ${action}, and ${place.callId} was decided ${due}`);
    }
  }

  /** Declines a question of the server, or kills the server between calls. */
  act(conversation: Conversation): void {
    const world = this.#world;
    const asked = conversation.pending.find(({ reason }) => reason === 'elicitation');
    if (asked) {
      world.count('mcp-declined');
      conversation.decide({ callId: asked.callId, action: 'deny' }).catch((error: unknown) => {
        world.check(RunchartError.isRunchartError(error), 'errors', () => `decide failed with ${String(error)}`);
      });
      return;
    }
    const living = [...this.#ends].filter(([, owner]) => owner === world.processId);
    if (world.fault('mcp-ends', this.#fault)) for (const [end] of living) void end.close();
  }

  /** Checks that no call continues at the server after its conversation ended it. */
  check(): void {
    const world = this.#world;
    if (this.#store.falselyRefused.size > 0) return;
    for (const [end, calls] of this.#calls) {
      if (this.#ends.get(end) !== world.processId) continue;
      // Calls with questions are kept open, up to a limit.
      const unasked = [...calls.values()].filter(({ questions }) => questions.length === 0);
      world.check(
        unasked.length === 0,
        'ABORT',
        () => `${unasked.length} calls of ${unasked[0]?.name} go on at the server at rest`,
      );
    }
  }

  async over(): Promise<void> {
    const { processId } = this.#world;
    await this.#tools?.close();
    const openConnections = [...this.#ends].filter(([, owner]) => owner === processId).length;
    this.#world.check(
      openConnections === 0,
      'I27',
      () => `${openConnections} connections to the server are open after the close`,
    );
    this.#isOver = true;
    // These connections belong to dead processes.
    for (const end of [...this.#ends.keys()]) await end.close();
  }
}

const asks = (payload: Json | undefined, question: string): boolean =>
  typeof payload === 'object' && payload !== null && 'message' in payload && payload.message === question;
