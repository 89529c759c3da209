/** The shapes of options, by which constructors check them. `npm run options` writes this file from the types. */

export const agentAsTool =
  "name?:s;description?:s;annotations?:{readOnly?:b;destructive?:b;idempotent?:b;openWorld?:b;paged?:b;volatile?:b;resumable?:b;server?:s;serverTool?:s;editsFiles?:b;runsCommands?:b;delegates?:b;aliases?:[s];lasting?:b;untrusted?:b;untrustedBy?:<[s]>;addresses?:[s];content?:[s];typed?:[s]}"

export const agentDelegate = "session?:s;history?:a;state?:o"

export const agentMake =
  "name:s;description?:s;prompt:s~effect/Effect~;tools?:[~Tool:prepare~];middleware?:[~effect-deepagents/Middleware~];output?:~effect/Schema/Schema~~standard~;maxRounds?:n;toolConcurrency?:n;stopWhen?:[f];parameters?:o"

export const agentProgram =
  "name:s;description?:s;input?:~effect/Schema/Schema~~standard~;output?:~effect/Schema/Schema~~standard~;tools?:[~Tool:prepare~];middleware?:[~effect-deepagents/Middleware~];reaches?:t;keeps?:b;run:f"

export const agentResume = "decisions?:a;unknownOutcome?:'ask''tell'f;checkpoint?:o;threadId?:s"

export const agentRun = "history?:a;state?:o;threadId?:s"

export const checkpointResume = "decisions?:a;unknownOutcome?:'ask''tell'f"

export const middlewareMake =
  "asks?:b;name:s;inherit?:b;counts?:b;check?:f;state?:a;tools?:[~Tool:prepare~]f;prompt?:fs;beforeAgent?:f;afterAgent?:f;beforeModel?:f;afterModel?:f;rewriteArguments?:f;rulings?:f;wrapModelCall?:f;wrapToolCall?:f"

export const providerOptionsFindMessageProblem =
  "anthropic?:{cacheControl?:{ttl?:'1h''5m'};citations?:b};openai?:{cacheBreakpoint?:{ttl?:'12h''30m'};imageDetail?:'auto''high''low''original'}"

export const providerOptionsFindToolProblem =
  "anthropic?:{deferLoading?:b;allowedCallers?:['code_execution''direct'];eagerInputStreaming?:b;cacheControl?:{ttl?:'1h''5m'};inputExamples?:a};openai?:{deferLoading?:b;namespace?:{name:s;description:s};allowedCallers?:['direct''programmatic'];async?:b;outputSchema?:o}"

export const toolDynamic =
  "description:s;annotations?:{readOnly?:b;destructive?:b;idempotent?:b;openWorld?:b;paged?:b;volatile?:b;resumable?:b;server?:s;serverTool?:s;editsFiles?:b;runsCommands?:b;delegates?:b;aliases?:[s];lasting?:b;untrusted?:b;untrustedBy?:<[s]>;addresses?:[s];content?:[s];typed?:[s]};providerOptions?:{anthropic?:{deferLoading?:b;allowedCallers?:['code_execution''direct'];eagerInputStreaming?:b;cacheControl?:{ttl?:'1h''5m'};inputExamples?:a};openai?:{deferLoading?:b;namespace?:{name:s;description:s};allowedCallers?:['direct''programmatic'];async?:b;outputSchema?:o}};outputLimit?:n;reaches?:t;describe?:f;parameters:o;execute:f;needsApproval?:bf;reconcile?:f;rehearse?:f"

export const toolMake =
  "description:s;annotations?:{readOnly?:b;destructive?:b;idempotent?:b;openWorld?:b;paged?:b;volatile?:b;resumable?:b;server?:s;serverTool?:s;editsFiles?:b;runsCommands?:b;delegates?:b;aliases?:[s];lasting?:b;untrusted?:b;untrustedBy?:<[s]>;addresses?:[s];content?:[s];typed?:[s]};providerOptions?:{anthropic?:{deferLoading?:b;allowedCallers?:['code_execution''direct'];eagerInputStreaming?:b;cacheControl?:{ttl?:'1h''5m'};inputExamples?:a};openai?:{deferLoading?:b;namespace?:{name:s;description:s};allowedCallers?:['direct''programmatic'];async?:b;outputSchema?:o}};outputLimit?:n;reaches?:t;describe?:f;parameters:<~effect/Schema/Schema~>~effect/Schema/Schema~~standard~;execute:f;needsApproval?:bf;reconcile?:f;rehearse?:f"
