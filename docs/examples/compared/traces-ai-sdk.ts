/** Traces of a run in OpenTelemetry, without contents. The program has registered a provider. */
import { openai } from '@ai-sdk/openai';
import { OpenTelemetry } from '@ai-sdk/otel';
import { generateText, registerTelemetry } from 'ai';

registerTelemetry(new OpenTelemetry());
const { text } = await generateText({
  model: openai('gpt-5.2'),
  prompt: 'Which books have we on statecharts?',
  telemetry: { functionId: 'librarian', recordInputs: false, recordOutputs: false },
});
console.log(text);
