/** The shapes of options, by which constructors check them. `npm run options` writes this file from the types. */

export const approvalClassifierByModel = "rules:s;settle?:f"

export const approvalClassifierEstimate = "rules:s;concurrency?:n"

export const approvalClassifierLayer = "classify:f;window?:d;by?:o"

export const backgroundSubagentsMake = "agents:a;maxDepth?:n"

export const backgroundTasksLayer = "maxRunning?:n;maxTotal?:n;maxDuration?:d;keep?:n"

export const budgetAccounts = "caps:f;onExhausted:'fail''finalAnswer'"

export const budgetMake =
  "unpriced?:'allow''refuse';tokens?:n;cost?:n;toolCalls?:n;rounds?:n;time?:d;onExhausted:'fail''finalAnswer'"

export const circuitBreakerMake = "failures?:n;cooldown?:d;when?:f"

export const fanOutMake = "above:n"

export const filesystemMake = "toolResults?:n;userMessages?:n;folder?:s;keep?:n"

export const guardrailByModel = "rules:s"

export const guardrailInput = "name:s;check:f;onTrip?:'fail'{answer:s};mode?:'before''beside'"

export const guardrailOutput = "name:s;check:f;onTrip?:'fail'{answer:s};mode?:'before''beside'"

export const guardrailToolCalls = "name:s;check:f;onTrip?:'answer''fail'"

export const guardrailToolResults = "name:s;check:f;onTrip?:'answer''fail'"

export const handoffsMake = "agents:[~effect-deepagents/Agent~];filter?:f;maxTransfers?:n"

export const hiddenResultsMake =
  "strict?:b;untrusted?:[s];trusted?:[s];acts?:[s];harmless?:[s];except?:f;hosts?:[s];servers?:[s];secrets?:<[s]>;clearance?:<[s]>;deciders?:[s]"

export const hooksMake = "hooks:a;cwd?:s;onDecision?:f"

export const humanInTheLoopMake =
  "tools?:<bf{name?:s;when?:f;allow?:['approve''edit''reject''respond'];deciders?:[s];describe?:f;likeness?:f}>;destructive?:b;except?:f;expiresIn?:d;inherit?:b"

export const memoryMake = "sources:[s{path:s;text:s;readOnly?:b}];maxBytes?:n"

export const messageKindsMake = "kinds:a"

export const modelFallbackMake = "when?:f"

export const modelHedgeMake = "after?:d"

export const modelRetryMake = "schedule?:~effect/Schedule~;within?:d"

export const modelRouterByClassifier = "models:o;by:s"

export const modelRouterMake = "models:<~effect/Layer~>;rules:[f];overflow?:s;sticky?:b"

export const modelTimeoutMake = "first?:d;idle?:d;total?:d"

export const promptCachingMake = "stableTools?:b"

export const remoteAgentsMake =
  "name:s;description:s;url:s;agentId:s;protocol?:'agent-protocol''langgraph';headers?:<s~effect/Redacted~>;pollInterval?:d;timeout?:d;maxBytes?:n"

export const responseCacheMake = "ttl?:d;providerTools?:b;when?:f"

export const rubricGraded = "grade:f;maxRevisions?:n"

export const rubricMake = "criteria?:s;each?:[s];threshold?:n;maxRevisions?:n"

export const skillsMake = "sources:[s];tools?:<[~Tool:prepare~]>"

export const subagentsMake = "agents:a;maxDepth?:n"

export const summarizationMake =
  "trigger?:[{fraction?:n;tokens?:n;messages?:n}]{fraction?:n;tokens?:n;messages?:n};tail?:{fraction?:n;tokens?:n;messages?:n};contextWindowTokens?:n;counter?:o;model?:~effect/Layer~;keep?:f;offload?:b;tool?:b;background?:b;by?:'here''provider'"

export const taintMake =
  "strict?:b;untrusted?:[s];trusted?:[s];acts?:[s];harmless?:[s];except?:f;hosts?:[s];servers?:[s];secrets?:<[s]>;clearance?:<[s]>;deciders?:[s]"

export const telemetryMake = "captureContent?:b"

export const toolRetryMake = "schedule?:~effect/Schedule~;tools?:<b~effect/Schedule~>"

export const toolSelectionMake = "alwaysOffer?:[s];limit?:n;preselect?:n;native?:b"

export const toolTimeoutMake = "default?:d;tools?:<d>"

export const windowMake = "messages?:n;tokens?:n;counter?:o"
