package org.apache.hudi.sink.event;

import java.util.List;
import org.apache.hudi.client.WriteStatus;

/** Has the fields of Hudi's class: what a writer has written and not committed. */
public class WriteMetadataEvent {
    private List<WriteStatus> writeStatuses;
    private int taskID;
    private String instantTime;
    private boolean lastBatch;
    private boolean endInput;
    private boolean bootstrap;

    public List<WriteStatus> getWriteStatuses() {
        return writeStatuses;
    }

    public void setWriteStatuses(List<WriteStatus> writeStatuses) {
        this.writeStatuses = writeStatuses;
    }

    public int getTaskID() {
        return taskID;
    }

    public void setTaskID(int taskID) {
        this.taskID = taskID;
    }

    public String getInstantTime() {
        return instantTime;
    }

    public void setInstantTime(String instantTime) {
        this.instantTime = instantTime;
    }

    public boolean isLastBatch() {
        return lastBatch;
    }

    public void setLastBatch(boolean lastBatch) {
        this.lastBatch = lastBatch;
    }

    public boolean isEndInput() {
        return endInput;
    }

    public void setEndInput(boolean endInput) {
        this.endInput = endInput;
    }

    public boolean isBootstrap() {
        return bootstrap;
    }

    public void setBootstrap(boolean bootstrap) {
        this.bootstrap = bootstrap;
    }
}
