/** Failures of methods, and of the store of sessions. */
import type { SessionError } from "../../core/SessionError.ts"
import { AcpError } from "../AcpError.ts"

export const fail = (reason: AcpError["reason"], method: string, detail: string) =>
  new AcpError({ reason, method, detail })

export const ofStore = (method: string) => (error: SessionError) => fail("Refused", method, error.message)
