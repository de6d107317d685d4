/**
 * RUN (docs/internals/lifecycle.md, State Machine): one request, or one resumption, from RunStart to its last
 * checkpoint. `active` holds the states that can be cancelled; the states after it cannot be. A commit state waits until its checkpoint
 * is durable,
 * because the next step may end the run. An eventless transition passes a state that has no
 * work.
 */

import { setup } from 'xstate';
import { compactionMachine } from '../compaction/compaction.machine.ts';
import { attemptStates } from '../modelCall.machine.ts';
import { resumeToolCallChart, resumeToolCallMachine } from '../tools/resumeToolCall.machine.ts';
import { toolRoundChart, toolRoundMachine } from '../tools/toolRound.machine.ts';
import { ask, type Chart, type ConfigOf, drop, log, type Message, spawn, stop, tell, update } from '../verbs.ts';
import type { QueuedMessage } from '../vocabulary.ts';
import { verbs } from '../xstateVerbs.ts';
import * as assigns from './assigns.ts';
import { runGuards } from './guards.ts';
import * as requests from './requests.ts';
import {
  contextOf,
  outputOf,
  type RunChartOutput,
  type RunContext,
  type RunEvent,
  type RunInput,
} from './runContext.ts';
import * as entries from './runEntries.ts';

type Sent =
  | Message<'parent', { type: 'steers.delivered'; messages: readonly QueuedMessage[] }>
  | Message<'round', { type: 'round.steered'; messageId: string } | { type: 'round.stopped' }>;

const openGate = [spawn(requests.spawnGate), update(assigns.openGate)] as const;
const openGateInWindow = [spawn(requests.spawnGateInWindow), update(assigns.openGateInWindow)] as const;
const closeGate = [stop('gate'), update(assigns.closeGate), ...openGate] as const;

/** Steers count from here on. The conversation removes them from its queue. */
const deliverSteers = [
  log(entries.steerEntries),
  tell(requests.tellSteersDelivered),
  update(assigns.takeSteers),
] as const;
const takeReply = [log(entries.replyEntries), update(assigns.takeReply)] as const;
const takeRound = [log(entries.roundEntries), update(assigns.collectRound)] as const;
const stopRound = [update(assigns.endEarly), tell({ to: 'round', event: { type: 'round.stopped' } })] as const;
/** The model is called without the calls that kept their turn. */
const leaveKept = [log(entries.notStartedEntries), update(assigns.dropKept)] as const;
const hold = update(assigns.holdDecision);
const commit = (boundary: Parameters<typeof entries.checkpointEntries>[0]) =>
  [log(entries.checkpointEntries(boundary)), ask(requests.askCommit(boundary))] as const;

/** The transitions after a durable reply. If the reply would end the run, an open gate finishes first. */
const goesOn = {
  guard: 'goesOn',
  target: '#RUN.active.LoopTop',
  actions: log(entries.continuationEntries),
} as const;
const stopAtLength = { target: '#RUN.Terminate', actions: update(assigns.stopAtLength) } as const;
const cutByLength = [
  { guard: 'cutByFullWindow', target: '#RUN.active.CommitAssistant.measuring' },
  { guard: 'cutByLength', ...stopAtLength },
] as const;
const afterReply = [
  goesOn,
  ...cutByLength,
  { guard: 'hasSuspended', target: '#RUN.Suspended', actions: update(assigns.suspendRun) },
  { guard: 'hearsEnd', target: '#RUN.active.CommitAssistant.hearing' },
  { target: '#RUN.NaturalEnd' },
] as const;

/** The transitions after the measurement of a request, if its size cannot be reduced any more. */
const gauged = [
  { guard: 'exhausted', target: '#RUN.Terminate', actions: update(assigns.stopExhausted) },
  { guard: 'atLimit', target: '#RUN.Terminate', actions: update(assigns.terminateRun) },
  { target: '#RUN.active.LlmCall', actions: update(assigns.startTurn) },
] as const;

const runSetup = () =>
  setup({
    types: {} as { context: RunContext; events: RunEvent; input: RunInput; output: RunChartOutput },
    actors: { toolRound: toolRoundMachine, resumeToolCall: resumeToolCallMachine, compaction: compactionMachine },
    actions: verbs<RunContext, RunEvent, requests.GateSpawn, Sent>(),
    guards: runGuards,
  });

const config = {
  id: 'RUN',
  context: ({ input }) => contextOf(input),
  output: ({ context }) => outputOf(context),
  initial: 'active',
  // These states cannot be cancelled, but events that arrive in them are not lost.
  on: {
    'decision.arrived': { actions: hold },
    'message.steered': { actions: update(assigns.queueSteer) },
    'message.returned': { actions: update(assigns.withdrawSteer) },
    'sub-agent.changed': { actions: update(assigns.countSubAgent) },
    'append.failed': { actions: update(assigns.releaseLost) },
  },
  states: {
    active: {
      tags: 'active',
      initial: 'RunStart',
      exit: [drop(requests.effectsOfRun), stop('gate')],
      on: {
        'run.cancelled': { target: '#RUN.Cancelled', actions: update(assigns.endEarly) },
        'append.failed': { target: '#RUN.Error', actions: update(assigns.endEarly) },
        'effect.failed': { target: '#RUN.Error', actions: update(assigns.endEarly) },
        'timer.elapsed': { guard: 'isDeadline', target: '#RUN.Cancelled', actions: update(assigns.endEarly) },
        'call.concluded': { actions: update(assigns.noteConcluded) },
        'call.settled': { actions: update(assigns.settleCall) },
        'xstate.done.actor.gate': [
          { guard: 'noneFailed', actions: closeGate },
          { target: '#RUN.Error', actions: update(assigns.failByTool) },
        ],
      },
      states: {
        RunStart: {
          entry: [log(entries.openingEntries), ask(requests.askDeadline), ask(requests.askStartPhase)],
          always: { guard: 'nobodyAtStart', target: 'CommitUser' },
          on: { 'effect.done': { target: 'CommitUser', actions: log(entries.phaseWriteEntries) } },
        },
        // A resumption has no message to commit. It waits as well, so that no replay starts before the resumption is durable.
        CommitUser: {
          entry: commit('UserMessage'),
          on: {
            'effect.done': [{ target: 'ResumeReplay0' }],
          },
        },
        ResumeReplay0: {
          entry: openGate,
          always: [
            { guard: 'replayed', target: 'CommitReplay0' },
            { guard: 'onlyUndecided', target: '#RUN.Suspended', actions: update(assigns.suspendRun) },
            { guard: 'gateIdle', target: 'LoopTop' },
          ],
        },
        // The gate has made the replay durable in its own CommitReplay.
        CommitReplay0: {
          always: [
            { guard: 'suspendedAnew', target: '#RUN.Suspended', actions: update(assigns.suspendRun) },
            { target: 'LoopTop' },
          ],
        },
        LoopTop: { always: { target: 'ResumeToolCall' } },
        ResumeToolCall: {
          entry: openGate,
          always: { guard: 'gateIdle', target: 'StepPrepare', actions: leaveKept },
        },
        StepPrepare: {
          entry: deliverSteers,
          initial: 'hearing',
          states: {
            hearing: {
              entry: ask(requests.askPreparePhases),
              always: { guard: 'nobodyPrepares', target: 'measuring' },
              on: {
                'effect.done': [
                  { guard: 'terminates', target: '#RUN.Terminate', actions: update(assigns.terminateRun) },
                  { target: 'measuring' },
                ],
              },
            },
            measuring: {
              entry: ask(requests.askContext),
              exit: log(entries.contextEntries),
              always: [
                { guard: 'unmeasuredAtLimit', target: '#RUN.Terminate', actions: update(assigns.terminateRun) },
                { guard: 'unmeasured', target: '#RUN.active.LlmCall', actions: update(assigns.startTurn) },
              ],
              on: {
                'effect.done': [{ guard: 'compacts', target: 'compacting' }, ...gauged],
              },
            },
            compacting: {
              invoke: { src: 'compaction', id: 'compaction', input: requests.compactionInput },
              on: {
                'xstate.done.actor.compaction': { target: 'compacted', actions: update(assigns.countCompaction) },
              },
            },
            // The summary counts towards the limits, and the rest may still be too large.
            compacted: {
              entry: ask(requests.askContextAgain),
              exit: log(entries.contextEntries),
              on: { 'effect.done': gauged },
            },
          },
        },
        // A decision that arrived before this state did not open a gate.
        LlmCall: {
          entry: openGateInWindow,
          initial: 'attempting',
          states: attemptStates,
          on: {
            'effect.done': [
              {
                guard: 'replies',
                target: 'AfterInference',
                actions: takeReply,
              },
              { target: '#RUN.Error', actions: update(assigns.endEarly) },
            ],
            'decision.arrived': { actions: [hold, ...openGateInWindow] },
          },
        },
        AfterInference: {
          entry: ask(requests.askAfterPhases),
          always: { guard: 'nobodyAfterInference', target: 'CommitAssistant' },
          on: { 'effect.done': { target: 'CommitAssistant', actions: update(assigns.noteTermination) } },
        },
        CommitAssistant: {
          entry: commit('AssistantTurnCommitted'),
          initial: 'committing',
          states: {
            committing: {
              on: {
                'effect.done': [
                  { guard: 'wasTerminated', target: '#RUN.Terminate', actions: update(assigns.terminateRun) },
                  { guard: 'hasToolCalls', target: '#RUN.active.ToolRound' },
                  { guard: 'gateOpen', target: 'joining' },
                  ...afterReply,
                ],
              },
            },
            // A hook, or an answer that does not fit its schema, may continue the run where it would end. A steer that
            // arrived
            // meanwhile continues it in any case.
            hearing: {
              entry: ask(requests.askNaturalEnd),
              on: {
                'effect.done': [
                  goesOn,
                  {
                    guard: 'continued',
                    target: '#RUN.active.LoopTop',
                    actions: log(entries.endHeardEntries),
                  },
                  { target: '#RUN.NaturalEnd', actions: log(entries.endHeardEntries) },
                ],
              },
            },
            // After earlier messages became a summary, the rest of the reply fits.
            measuring: {
              entry: ask(requests.askContextOfCut),
              on: {
                'effect.done': [
                  { guard: 'compacts', target: '#RUN.active.LoopTop', actions: log(entries.cutEntries) },
                  stopAtLength,
                ],
              },
            },
            joining: {
              on: { 'xstate.done.actor.gate': { guard: 'noneFailed', target: 'joined', actions: closeGate } },
            },
            // The gate has settled a call, or one of its calls waits again.
            joined: {
              always: [
                { guard: 'gateOpen', target: 'joining' },
                goesOn,
                ...cutByLength,
                { target: '#RUN.Suspended', actions: update(assigns.suspendRun) },
              ],
            },
          },
        },
        ToolRound: {
          initial: 'running',
          states: {
            running: {
              entry: openGateInWindow,
              invoke: { src: 'toolRound', id: 'round', input: requests.roundInput },
              on: {
                'run.cancelled': { actions: stopRound },
                'append.failed': { actions: stopRound },
                'effect.failed': { actions: stopRound },
                'timer.elapsed': { guard: 'isDeadline', actions: stopRound },
                'decision.arrived': { actions: [hold, ...openGateInWindow] },
                'call.suspended': { actions: [update(assigns.suspendCall), ...openGateInWindow] },
                'message.steered': {
                  guard: 'cutsRound',
                  actions: [update(assigns.queueSteer), tell(requests.tellRoundSteered)],
                },
                // A failure at the gate ends the run after the round.
                'xstate.done.actor.gate': { actions: closeGate },
                'xstate.done.actor.round': [
                  { guard: 'roundCancelled', target: '#RUN.Cancelled' },
                  { guard: 'roundBroken', target: '#RUN.Error' },
                  { guard: 'stateConflict', target: '#RUN.Error', actions: update(assigns.endEarly) },
                  { guard: 'toolFailed', target: 'failing', actions: takeRound },
                  { target: '#RUN.active.CommitTool', actions: takeRound },
                ],
              },
            },
            // A tool failure ends the run (policy onToolFailure). The round is durable, and calls of an open gate finish
            // before the
            // run's end is written.
            failing: { entry: commit('ToolResultsCommitted'), on: { 'effect.done': { target: 'failed' } } },
            failed: { always: { guard: 'gateIdle', target: '#RUN.Error', actions: update(assigns.failByTool) } },
          },
        },
        CommitTool: {
          entry: commit('ToolResultsCommitted'),
          on: {
            'effect.done': [{ target: 'ResumeAfterTool' }],
          },
        },
        ResumeAfterTool: {
          entry: openGate,
          always: [
            { guard: 'allSuspended', target: '#RUN.Suspended', actions: update(assigns.suspendRun) },
            {
              guard: 'gateIdle',
              target: 'LoopTop',
              actions: leaveKept,
            },
          ],
        },
      },
    },
    Terminate: { entry: [log(entries.terminateEntries), update(assigns.keepOpenCalls)], always: { target: 'RunEnd' } },
    NaturalEnd: { always: { target: 'RunEnd' } },
    Suspended: { always: { target: 'RunEnd' } },
    Cancelled: { entry: [log(entries.cancelEntries), update(assigns.closeOpenCalls)], always: { target: 'RunEnd' } },
    Error: {
      entry: [log(entries.errorEntries), update(assigns.keepOpenCalls), ask(requests.askErrorPhases)],
      exit: drop(requests.effectsOfRun),
      always: { guard: 'nobodyHearsError', target: 'RunEnd' },
      on: {
        'effect.done': { target: 'RunEnd' },
        'run.cancelled': { target: 'RunEnd' },
        'append.failed': { target: 'RunEnd', actions: log(entries.lostEntries) },
      },
    },
    RunEnd: {
      entry: ask(requests.askEndPhase),
      exit: drop(requests.effectsOfRun),
      always: { guard: 'nobodyAtEnd', target: 'CommitFinished' },
      on: {
        'effect.done': { target: 'CommitFinished' },
        'run.cancelled': { target: 'CommitFinished' },
        'append.failed': { target: 'CommitFinished', actions: log(entries.lostEntries) },
      },
    },
    CommitFinished: {
      entry: [log(entries.closingEntries), ask(requests.askFinish)],
      exit: drop(requests.effectsOfRun),
      on: {
        'effect.done': { target: 'Done' },
        'append.failed': { guard: 'lostItsEnd', target: 'Done', actions: update(assigns.loseEnd) },
      },
    },
    Done: { type: 'final' },
  },
} satisfies ConfigOf<typeof runSetup>;

export const runChart: Chart = {
  id: config.id,
  config,
  implementations: { guards: runGuards, actors: { toolRound: toolRoundChart, resumeToolCall: resumeToolCallChart } },
};
/** The chart RUN: the work that a message begins, up to its end. */
export const runMachine = /* @__PURE__ */ (() => runSetup().createMachine(config))();
