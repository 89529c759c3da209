/** The shapes of options, by which constructors check them. `npm run options` writes this file from the types. */

export const confluenceTools = "connection:~Connection:credential~;baseUrl:s"

export const connectionFromToken = "service:s;token:f;how?:s"

export const connectionStored = "service:s;namespace:s~effect/Effect~;name?:s;refresh?:f;how?:s"

export const gitHubTools = "connection:~Connection:credential~;baseUrl?:s"

export const gmailTools = "connection:~Connection:credential~;baseUrl?:s"

export const googleCalendarTools = "connection:~Connection:credential~;baseUrl?:s"

export const googleDriveTools = "connection:~Connection:credential~;baseUrl?:s"

export const hubSpotTools = "connection:~Connection:credential~;baseUrl?:s"

export const jiraTools = "connection:~Connection:credential~;baseUrl:s"

export const linearTools = "connection:~Connection:credential~;baseUrl?:s"

export const notionTools = "connection:~Connection:credential~;baseUrl?:s"

export const openApiToolsMake =
  "name?:s;include?:[s]f;auth?:<~Connection:credential~>~Connection:credential~;names?:f;as?:'operations''search';baseUrl?:s;origins?:[s];headers?:<s>;outputLimit?:n"

export const slackTools = "connection:~Connection:credential~;baseUrl?:s"
