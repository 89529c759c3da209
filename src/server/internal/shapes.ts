/** The shapes of options, by which constructors check them. `npm run options` writes this file from the types. */

export const a2AEncode = "taskId:s;contextId:s;told?:a"

export const agUiEncode = "threadId:s;runId:s;told?:a;before?:a"

export const aiSdkEncode = "messageId:s;told?:a"

export const langGraphEncode =
  "threadId:s;runId:s;modes?:['custom''messages-tuple''updates''values'];before?:a;told?:a;after?:n"

export const mcpAgentLayer =
  "agents?:[~effect-deepagents/Agent~];tools?:[~Tool:prepare~];backend?:o;skills?:{sources:[s]}"

export const mcpAgentLayerHttp =
  "name:s;version:s;instructions?:s;agents?:[~effect-deepagents/Agent~];tools?:[~Tool:prepare~];backend?:o;skills?:{sources:[s]};path:'*'s;allowedHosts?:[s];allowedOrigins?:[s]"

export const mcpAgentLayerStdio =
  "name:s;version:s;instructions?:s;agents?:[~effect-deepagents/Agent~];tools?:[~Tool:prepare~];backend?:o;skills?:{sources:[s]}"

export const openAiEncodeChat = "id:s;model:s;includeUsage?:b"

export const openAiEncodeResponse = "id:s;model?:s;after?:n"

export const schedulesAdd = "name:s;cron:s;timeZone?:s;tenant:s;agent:s;thread:s;input:s;missed?:'once''skip'"

export const serverBearer = "verify:f"

export const serverClientMake = "url:s;token?:~effect/Redacted~"

export const serverHttp =
  "hosts?:[s];origins?:[s];maxBody?:n;page?:bs;protocols?:['a2a''agUi''aiSdk''langGraph''openAi'];rate?:n;readers?:n;files?:f;apps?:f"

export const serverLayer =
  "keep?:n;limit?:n;tenantLimit?:n;lease?:d;takeOver?:b;models?:<~effect/Layer~>;modes?:[s];thinking?:['high''low''max''medium''off''xhigh']"

export const serverLayerCluster =
  "keep?:n;limit?:n;tenantLimit?:n;models?:<~effect/Layer~>;modes?:[s];thinking?:['high''low''max''medium''off''xhigh']"

export const serverLoopback = "token?:~effect/Redacted~;tenant?:s"

export const triggerLayer =
  "name:s;path:s;form:o;secrets:[~effect/Redacted~];payload:~effect/Schema/Schema~;tenant:s;agent:s;input:f;tolerance?:d;maxBody?:n"

export const webhooksLayer = "endpoints:a;allowPrivate?:[s]"
