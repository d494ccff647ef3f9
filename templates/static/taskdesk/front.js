/* The form on the page at /: it sends a message and shows the answer as it arrives. It talks to this server only. */
"use strict";

(() => {
    const at = (id) => document.getElementById(id);
    const box = at("box"), agent = at("agent"), key = at("key"), text = at("text"), answer = at("answer");
    const buttons = { send: at("send"), stop: at("stop"), anew: at("anew") };
    const KEY = "taskdesk.key";
    let task = null, context = null, artifacts = new Map(), replyText = "", reading = false;

    // The printed address has the key after its #, which browsers never send. It is moved out of the address bar and
    // the history into the storage of this tab.
    const keyInAddress = new URLSearchParams(location.hash.slice(1)).get("key");
    if (keyInAddress) {
        sessionStorage.setItem(KEY, keyInAddress);
        history.replaceState(null, "", location.pathname);
    }
    key.value = sessionStorage.getItem(KEY) || "";

    const example = () => agent.selectedOptions[0].dataset.say;
    text.value = example();
    box.hidden = false;

    agent.addEventListener("change", () => { reset(); text.value = example(); });
    buttons.anew.addEventListener("click", () => { reset(); text.focus(); });
    buttons.stop.addEventListener("click", cancel);
    box.addEventListener("submit", (event) => { event.preventDefault(); send(); });
    text.addEventListener("keydown", (event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { box.requestSubmit(); }
    });

    function reset() {
        task = context = null;
        clearAnswer();
        buttons.anew.hidden = answer.hidden = at("wire").hidden = true;
        showStatus("");
    }

    function clearAnswer() {
        artifacts = new Map();
        replyText = "";
        at("frames").textContent = answer.textContent = "";
    }

    function showStatus(sentence, wrong = false) {
        at("state").textContent = sentence;
        at("state").classList.toggle("wrong", wrong);
    }

    function post(method, params, signal) {
        return fetch(`/agents/${encodeURIComponent(agent.value)}/jsonrpc`, {
            method: "POST",
            signal,
            headers: {
                "Authorization": `Bearer ${key.value.trim()}`, "Content-Type": "application/json", "A2A-Version": "1.0",
                "Accept": "text/event-stream, application/json",
            },
            body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
        });
    }

    const makeId = () => `page-${Date.now()}-${Math.random().toString(36).slice(2)}`;

    async function send() {
        if (reading) { return; }
        sessionStorage.setItem(KEY, key.value.trim());
        const message = { messageId: makeId(), role: "ROLE_USER", parts: [{ text: text.value }] };
        if (task) { Object.assign(message, { taskId: task, contextId: context }); }
        clearAnswer();
        answer.hidden = at("wire").hidden = false;
        setBusy(true);
        showStatus("sending");
        try {
            await read(await post("SendStreamingMessage", { message }));
        } catch (error) {
            showStatus(`The connection broke: ${error.message}. The task continues on the server.`, true);
        }
        setBusy(false);
    }

    function setBusy(now) {
        reading = now;
        buttons.send.disabled = now;
        buttons.stop.disabled = !now;
        agent.disabled = now;
    }

    async function cancel() {
        if (!task) { return; }
        const refused = (await (await post("CancelTask", { id: task })).json()).error;
        if (refused) { showStatus(refused.message, true); }
    }

    async function read(response) {
        if (!(response.headers.get("Content-Type") || "").startsWith("text/event-stream")) {
            applyPayload(await response.text());
            return;
        }
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
        let rest = "";
        for (;;) {
            const { done, value } = await reader.read();
            if (done) { return; }
            const events = (rest + value).replaceAll("\r\n", "\n").split("\n\n");
            rest = events.pop();
            for (const event of events) {
                const data = event.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart());
                if (data.length) { applyPayload(data.join("\n")); }
            }
        }
    }

    function applyPayload(payload) {
        at("frames").textContent += `${payload}\n`;
        let reply;
        try { reply = JSON.parse(payload); } catch { showStatus("The answer is not JSON.", true); return; }
        if (reply.error) { showStatus(reply.error.message, true); return; }
        const { task: whole, message, statusUpdate, artifactUpdate } = reply.result || {};
        if (whole) {
            [task, context] = [whole.id, whole.contextId];
            for (const artifact of whole.artifacts || []) { artifacts.set(artifact.artifactId, textOf(artifact.parts)); }
            applyStatus(whole.status);
        }
        if (statusUpdate) { applyStatus(statusUpdate.status); }
        if (artifactUpdate) {
            const { artifact, append } = artifactUpdate, former = append ? artifacts.get(artifact.artifactId) || "" : "";
            artifacts.set(artifact.artifactId, former + textOf(artifact.parts));
        }
        if (message) { replyText = textOf(message.parts); showStatus("answered, without a task"); }
        answer.textContent = [...artifacts.values(), replyText].filter(Boolean).join("\n\n");
    }

    function applyStatus(status) {
        const state = (status.state || "").replace("TASK_STATE_", "").toLowerCase().replaceAll("_", " ");
        const isQuestion = state === "input required" || state === "auth required";
        const isEnded = ["completed", "failed", "canceled", "rejected"].includes(state);
        replyText = status.message && (isQuestion || isEnded) ? textOf(status.message.parts) : "";
        const note = status.message && !replyText ? `: ${textOf(status.message.parts)}` : "";
        showStatus(isQuestion ? "The agent asks a question: answer it in the message field." : state + note, state === "failed" || state === "rejected");
        buttons.anew.hidden = !isQuestion;
        if (isQuestion) { text.value = ""; text.focus(); }
        if (isEnded) { task = context = null; }
    }

    function textOf(parts) {
        return (parts || []).map((part) => part.text ?? (part.data === undefined ? `[${part.filename || part.mediaType || "file"}]` : JSON.stringify(part.data, null, 2))).join("");
    }
})();
