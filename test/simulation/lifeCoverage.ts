/**
 * The kinds of events that simulated lives must reach. Invariant: a kind that too few lives reach is reported by name,
 * because it is not tested. A small number of lives may miss the kinds in `seldom`.
 */
import type { SimulationReport } from '../../src/testing/index.ts';

type Counts = { [group: string]: { [kind: string]: number } };
interface Kinds {
  often: readonly string[];
  seldom: readonly string[];
}

const words = (text: string): readonly string[] => text.trim().split(/\s*,\s*/);

const EXPECTED: Readonly<Record<string, Kinds>> = {
  tools: { often: words('ask, fetch, look, note, pay, rest, save, show'), seldom: [] },
  outcomes: {
    often: words(
      'succeeded, unknown, cancelled cancelled, cancelled skipped, cancelled restart, failed too_many_calls',
    ),
    seldom: words(
      `failed denied, failed invalid_arguments, failed unknown_tool, failed blocked, failed timeout, failed plugin_error, failed not_json,
      failed refused_by_tool, failed error, failed suspend_limit, cancelled not_started, cancelled terminated`,
    ),
  },
  decisions: {
    often: words('asked, approve, edit'),
    seldom: words('deny, answer, early approve, early deny, early edit, early answer'),
  },
  receipts: {
    often: words('nobody unknown, waiting applied, late stale'),
    seldom: words('waiting duplicate, waiting conflict, early applied, early held, twice duplicate'),
  },
  stops: {
    often: words('completed end_turn, interrupted crash, interrupted cancelled, error store, error model'),
    seldom: words(
      `error hook, error context_exhausted, error timeout, error internal, error executor, error tool, error state, error max_budget,
      error max_total_tokens, error max_turns, error max_tokens, error empty_replies, error no_progress,
      completed simulated, interrupted superseded`,
    ),
  },
  crashes: {
    often: words('idle, store'),
    seldom: words('model, tool, plugin, summary, waiting, active, error, closed'),
  },
  limits: {
    often: words('queue, suspensionsPerCall'),
    seldom: words('decisions, resultBytes, runMs of a resumed cycle'),
  },
  width: { often: words('1, 2'), seldom: words('3, 4') },
  entries: {
    often: words(
      `conversation, run-started, run-resumed, run-suspended, run-stop, checkpoint, user-message, message-queued,
      message-returned, agent-output, model-reply, model-retry, tool-started, tool-suspended, tool-result, decision,
      decision-consumed, tool-allowed, state-changed, continuation, diagnostic`,
    ),
    seldom: words('call-settled, notice, extension, sub-agent, context-warning, compaction'),
  },
  // The outcome of earlier messages, and of an interrupted summary.
  summaries: { often: words('made'), seldom: words('useless, failed, cut') },
  // Final answers with a schema of the agent or of a message, replies that violate it, and their outcomes.
  answers: {
    often: words('fits, asked again, mended, given up, of the agent, of the message'),
    seldom: words('fenced'),
  },
  // The answers of rules and hooks for executed calls, the calls that reached an MCP server, and the acts of an
  // observer.
  guards: { often: words('allow alone'), seldom: words('allow decided, ask decided, ask answered') },
  mcp: { often: [], seldom: words('look, set, order, question accept, question cancel') },
  inspected: { often: words('attached, attached again, detached, compared'), seldom: [] },
  // Overtaken appends that were then refused, by the rarest kind of their entries.
  overtaken: {
    often: [],
    seldom: words(
      `run-started, run-resumed, run-suspended, run-stop, checkpoint, message-queued, message-returned, agent-output,
      model-retry, tool-allowed, tool-started, tool-suspended, tool-result, decision, decision-consumed, call-settled,
      state-changed, continuation, notice, diagnostic, sub-agent, context-warning, extension, compaction, conversation`,
    ),
  },
  faults: {
    often: words(
      'crash, store-slow, store-refused, store-misled, delivered-twice, acts-twice, model, tool, plugin-slow, fork',
    ),
    seldom: words(
      `store-overtaken, blob-refused, unauthorized, plugin-deaf, plugin-edits, plugin-rewrites, plugin-blocks,
      plugin-suspends, plugin-terminates, guard-forbids, model-cut, model-hang, model-deaf, model-auth, model-network,
      model-server, model-rate-limit, model-malformed, model-talks-on, tool-deaf, tool-late, tool-throws,
      tool-throwsAtOnce, tool-errs, summary, plugin-keeps-all, plugin-preCompact, tool-suspends, tool-odd, tool-twice, tool-meddles, tool-asks-again,
      tool-long, abort-of-run, has-permissions, has-hooks, has-mcp, has-inspector, remember, hook-throws, hook-hangs, hook-nonsense,
      hook-late, hook-PreToolUse-allow, hook-PreToolUse-ask, hook-PreToolUse-block, hook-PreToolUse-rewrite,
      hook-PreToolUse-misfit, hook-PreToolUse-stop, hook-PermissionRequest-allow, hook-PermissionRequest-block,
      hook-PostToolUse-suppress, hook-PostToolUse-stop, hook-Stop-more, decide-allow, decide-deny, decide-ask, decide-hangs,
      decide-throws, mcp-errs, mcp-refuses, mcp-hangs, mcp-dies, mcp-late, mcp-asksTwice, mcp-unreachable, mcp-cancelled`,
    ),
  },
};

/** The kinds that lives have reached so far. */
export class Coverage {
  readonly #counts: Counts = {};

  add({ reached, faults }: Pick<SimulationReport, 'reached' | 'faults'>): void {
    for (const [group, counts] of Object.entries({ ...reached, faults })) {
      const sum = this.#counts[group] ?? {};
      this.#counts[group] = sum;
      for (const [kind, count] of Object.entries(counts)) sum[kind] = (sum[kind] ?? 0) + count;
    }
  }

  /** Returns the expected kinds that were not reached. `many`: enough lives for the rare kinds. */
  missing(many: boolean): string[] {
    return Object.entries(EXPECTED).flatMap(([group, { often, seldom }]) =>
      [...often, ...(many ? seldom : [])]
        .filter((kind) => !this.#counts[group]?.[kind])
        .map((kind) => `${group}: ${kind}`),
    );
  }
}
