/**
 * RUN (run-lifecycle, State Machine): one request, or one resumption, from RunStart to its last checkpoint. The states
 * and arrows are the document's; `active` holds what can be cancelled, and the terminal tail behind it cannot. A
 * commit state waits until its checkpoint is durable, since what follows it may end the run. A state whose
 * work is empty is passed by an eventless transition.
 */

import { setup } from 'xstate';
import { askContext, contextEntries } from './contextUse.ts';
import { attemptStates } from './modelCall.machine.ts';
import { resumeToolCallMachine } from './resumeToolCall.machine.ts';
import * as round from './roundSteps.ts';
import type { RunChartOutput, RunContext, RunEvent, RunInput } from './runContext.ts';
import * as end from './runEnd.ts';
import * as gate from './runGate.ts';
import { runGuards } from './runGuards.ts';
import * as inbox from './runInbox.ts';
import * as step from './runSteps.ts';
import { toolRoundMachine } from './toolRound.machine.ts';
import { ask, drop, log, type Message, spawn, stop, tell, update, verbs } from './verbs.ts';
import type { QueuedMessage } from './vocabulary.ts';

type Said =
  | Message<'parent', { type: 'steers.delivered'; messages: readonly QueuedMessage[] }>
  | Message<'round', { type: 'round.steered'; messageId: string } | { type: 'round.stopped' }>;

const openGate = [spawn(gate.gateOfRun), update(gate.gateOpened)] as const;
const openGateInWindow = [spawn(gate.gateInWindow), update(gate.gateOpenedInWindow)] as const;
const closeGate = [stop('gate'), update(gate.gateClosed), ...openGate] as const;

/** Steers start to count here; the conversation hears of it and takes them off its queue. */
const deliverSteers = [log(step.steerEntries), tell(step.steersDelivered), update(step.steersTaken)] as const;
const takeReply = [log(step.replyEntries), update(step.replyArrives)] as const;
const takeRound = [log(round.roundEntries), update(round.roundCollected)] as const;
const stopRound = [update(end.early), tell({ to: 'round', event: { type: 'round.stopped' } })] as const;
const hold = update(inbox.hold);
const commit = (boundary: Parameters<typeof step.checkpoint>[0]) =>
  [log(step.checkpoint(boundary)), ask(step.askCommit(boundary))] as const;

/** Where a durable reply leads; a gate still open is waited for first where the reply would end the run. */
const goesOn = {
  guard: 'goesOn',
  target: '#RUN.active.LoopTop',
  actions: log(step.continuationEntries),
} as const;
const cutByLength = { guard: 'cutByLength', target: '#RUN.Terminate', actions: update(end.cutByLength) } as const;
const afterReply = [
  goesOn,
  cutByLength,
  { guard: 'hasSuspended', target: '#RUN.Suspended', actions: update(end.suspendedRun) },
  { target: '#RUN.NaturalEnd' },
] as const;

export const runMachine = setup({
  types: {} as { context: RunContext; events: RunEvent; input: RunInput; output: RunChartOutput },
  actors: { toolRound: toolRoundMachine, resumeToolCall: resumeToolCallMachine },
  actions: verbs<RunContext, RunEvent, gate.GateSpawn, Said>(),
  guards: runGuards,
}).createMachine({
  id: 'RUN',
  context: ({ input }) => step.contextOf(input),
  output: ({ context }) => end.outputOf(context),
  initial: 'active',
  // The terminal tail cannot be cancelled, but what arrives there is not lost either.
  on: {
    'decision.arrived': { actions: hold },
    'message.steered': { actions: update(inbox.queueSteer) },
    'message.returned': { actions: update(inbox.takeBack) },
    'sub-agent.changed': { actions: update(inbox.countSpent) },
    'append.failed': { actions: update(inbox.unhold) },
  },
  states: {
    active: {
      initial: 'RunStart',
      exit: [drop(step.effectsOfRun), stop('gate')],
      on: {
        'run.cancelled': { target: '#RUN.Cancelled', actions: update(end.early) },
        'append.failed': { target: '#RUN.Error', actions: update(end.early) },
        'effect.failed': { target: '#RUN.Error', actions: update(end.early) },
        // The deadline: the other timers, waits between attempts, are taken where they are waited for.
        'timer.elapsed': { target: '#RUN.Cancelled', actions: update(end.early) },
        'call.concluded': { actions: update(inbox.noteResult) },
        'call.settled': { actions: update(inbox.settleCall) },
        'xstate.done.actor.gate': [
          { guard: 'noneFailed', actions: closeGate },
          { target: '#RUN.Error', actions: update(end.toolFailed) },
        ],
      },
      states: {
        RunStart: {
          entry: [log(step.openingEntries), ask(step.askDeadline), ask(step.askStartPhase)],
          always: { guard: 'nobodyAtStart', target: 'CommitUser' },
          on: { 'effect.done': { target: 'CommitUser', actions: log(step.phaseWrites) } },
        },
        // A resumption has no message to commit; it waits all the same, so that nothing is replayed before it is on record.
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
            { guard: 'onlyUndecided', target: '#RUN.Suspended', actions: update(end.suspendedRun) },
            { guard: 'gateIdle', target: 'LoopTop' },
          ],
        },
        // The gate has made the replay durable in its own CommitReplay.
        CommitReplay0: {
          always: [
            { guard: 'suspendedAnew', target: '#RUN.Suspended', actions: update(end.suspendedRun) },
            { target: 'LoopTop' },
          ],
        },
        LoopTop: { always: { target: 'ResumeToolCall' } },
        ResumeToolCall: {
          entry: openGate,
          always: { guard: 'gateIdle', target: 'StepPrepare' },
        },
        StepPrepare: {
          entry: deliverSteers,
          initial: 'hearing',
          states: {
            hearing: {
              entry: ask(step.askPreparePhases),
              always: { guard: 'nobodyPrepares', target: 'measuring' },
              on: {
                'effect.done': [
                  { guard: 'terminates', target: '#RUN.Terminate', actions: update(end.terminated) },
                  { target: 'measuring' },
                ],
              },
            },
            measuring: {
              entry: ask(askContext),
              exit: log(contextEntries),
              always: [
                { guard: 'unmeasuredAtLimit', target: '#RUN.Terminate', actions: update(end.terminated) },
                { guard: 'unmeasured', target: '#RUN.active.LlmCall', actions: update(step.turnStarts) },
              ],
              on: {
                'effect.done': [
                  { guard: 'exhausted', target: '#RUN.Terminate', actions: update(end.exhaustedWindow) },
                  { guard: 'atLimit', target: '#RUN.Terminate', actions: update(end.terminated) },
                  { target: '#RUN.active.LlmCall', actions: update(step.turnStarts) },
                ],
              },
            },
          },
        },
        LlmCall: {
          initial: 'attempting',
          states: attemptStates,
          on: {
            'effect.done': [
              {
                guard: 'replies',
                target: 'AfterInference',
                actions: takeReply,
              },
              { target: '#RUN.Error', actions: update(end.early) },
            ],
            'decision.arrived': { actions: [hold, ...openGateInWindow] },
          },
        },
        AfterInference: {
          entry: ask(step.askAfterPhases),
          always: { guard: 'nobodyAfterInference', target: 'CommitAssistant' },
          on: { 'effect.done': { target: 'CommitAssistant', actions: update(step.terminationAsked) } },
        },
        CommitAssistant: {
          entry: commit('AssistantTurnCommitted'),
          initial: 'committing',
          states: {
            committing: {
              on: {
                'effect.done': [
                  { guard: 'wasTerminated', target: '#RUN.Terminate', actions: update(end.terminated) },
                  { guard: 'hasToolCalls', target: '#RUN.active.ToolRound' },
                  { guard: 'gateOpen', target: 'joining' },
                  ...afterReply,
                ],
              },
            },
            joining: {
              on: { 'xstate.done.actor.gate': { guard: 'noneFailed', target: 'joined', actions: closeGate } },
            },
            // A gate that was waited for has settled a call, or one of its calls waits again.
            joined: {
              always: [
                { guard: 'gateOpen', target: 'joining' },
                goesOn,
                cutByLength,
                { target: '#RUN.Suspended', actions: update(end.suspendedRun) },
              ],
            },
          },
        },
        ToolRound: {
          initial: 'running',
          states: {
            running: {
              invoke: { src: 'toolRound', id: 'round', input: round.roundInput },
              on: {
                'run.cancelled': { actions: stopRound },
                'append.failed': { actions: stopRound },
                'effect.failed': { actions: stopRound },
                'timer.elapsed': { actions: stopRound },
                'decision.arrived': { actions: [hold, ...openGateInWindow] },
                'call.suspended': { actions: [update(inbox.suspendCall), ...openGateInWindow] },
                'message.steered': {
                  guard: 'cutsRound',
                  actions: [update(inbox.queueSteer), tell(inbox.roundSteered)],
                },
                // What failed at the gate ends the run when the round is over.
                'xstate.done.actor.gate': { actions: closeGate },
                'xstate.done.actor.round': [
                  { guard: 'roundCancelled', target: '#RUN.Cancelled' },
                  { guard: 'roundBroken', target: '#RUN.Error' },
                  { guard: 'stateConflict', target: '#RUN.Error', actions: update(end.early) },
                  { guard: 'toolFailed', target: 'failing', actions: takeRound },
                  { target: '#RUN.active.CommitTool', actions: takeRound },
                ],
              },
            },
            // A tool whose failure ends the run (policy onToolFailure): what the round left is durable, and what runs at a
            // gate beside it is through, before the run's end is written.
            failing: { entry: commit('ToolResultsCommitted'), on: { 'effect.done': { target: 'failed' } } },
            failed: { always: { guard: 'gateIdle', target: '#RUN.Error', actions: update(end.toolFailed) } },
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
            { guard: 'allSuspended', target: '#RUN.Suspended', actions: update(end.suspendedRun) },
            {
              guard: 'gateIdle',
              target: 'LoopTop',
              actions: [log(round.leaveKept), update(step.keptDropped)],
            },
          ],
        },
      },
    },
    Terminate: { entry: [log(end.terminateEntries), update(end.leftOpen)], always: { target: 'RunEnd' } },
    NaturalEnd: { always: { target: 'RunEnd' } },
    Suspended: { always: { target: 'RunEnd' } },
    Cancelled: { entry: [log(end.cancelEntries), update(end.closedAll)], always: { target: 'RunEnd' } },
    Error: {
      entry: [log(end.errorEntries), update(end.leftOpen), ask(end.askErrorPhases)],
      exit: drop(step.effectsOfRun),
      always: { guard: 'nobodyHearsError', target: 'RunEnd' },
      on: {
        'effect.done': { target: 'RunEnd' },
        'run.cancelled': { target: 'RunEnd' },
        'append.failed': { target: 'RunEnd', actions: log(end.lostEntries) },
      },
    },
    RunEnd: {
      entry: ask(end.askEndPhase),
      exit: drop(step.effectsOfRun),
      always: { guard: 'nobodyAtEnd', target: 'CommitFinished' },
      on: {
        'effect.done': { target: 'CommitFinished' },
        'run.cancelled': { target: 'CommitFinished' },
        'append.failed': { target: 'CommitFinished', actions: log(end.lostEntries) },
      },
    },
    CommitFinished: {
      entry: [log(end.closingEntries), ask(end.askFinish)],
      exit: drop(step.effectsOfRun),
      on: {
        'effect.done': { target: 'Done' },
        'append.failed': { guard: 'lostItsEnd', target: 'Done', actions: update(end.endLost) },
      },
    },
    Done: { type: 'final' },
  },
});
