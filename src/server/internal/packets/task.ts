/** Tasks of A2A: their states, artifacts and questions. */
import type { AgentEvent, Of } from "../../../core/AgentEvent.ts"
import type { Request } from "../../../core/Approval.ts"
import type { JsonObject } from "../../../core/Json.ts"
import { defined } from "../../../support/json/defined.ts"

/** The state of a task. */
export type TaskState =
  | "TASK_STATE_SUBMITTED"
  | "TASK_STATE_WORKING"
  | "TASK_STATE_COMPLETED"
  | "TASK_STATE_FAILED"
  | "TASK_STATE_CANCELED"
  | "TASK_STATE_INPUT_REQUIRED"
  | "TASK_STATE_REJECTED"

/** The state that the end of a run makes. */
export const stateOf = (event: Of<"RunCompleted" | "RunFailed" | "RunInterrupted">): TaskState => {
  if (event._tag === "RunFailed") return "TASK_STATE_FAILED"
  if (event._tag === "RunInterrupted") return "TASK_STATE_CANCELED"
  if (event.stopReason === "suspended") return "TASK_STATE_INPUT_REQUIRED"
  return event.stopReason === "refused" ? "TASK_STATE_REJECTED" : "TASK_STATE_COMPLETED"
}

/** Makes the status of a task. */
export const statusOf = (state: TaskState, at: AgentEvent["at"], message?: JsonObject): JsonObject => ({
  state,
  timestamp: new Date(at).toISOString(),
  ...defined({ message })
})

/** Makes an artifact of a text. */
export const artifactOf = (artifactId: string, text: string): JsonObject => ({
  artifactId,
  name: "answer",
  parts: [{ text }]
})

/** Makes the message of an agent that waits for answers: words for people, and data for programs. */
export const requestMessageOf = (
  contextId: string,
  taskId: string,
  requests: ReadonlyArray<Pick<Request, "allow" | "answer" | "arguments" | "description" | "id" | "toolName">>
): JsonObject => ({
  messageId: `${requests[0]?.id ?? taskId}/asked`,
  contextId,
  taskId,
  role: "ROLE_AGENT",
  parts: [
    { text: requests.map(({ description }) => description).join("\n") },
    {
      data: {
        requests: requests.map(({ allow, answer, arguments: args, description, id, toolName }) => ({
          id,
          toolName,
          arguments: args,
          description,
          allow: [...allow],
          ...defined({ answer })
        }))
      }
    }
  ]
})
