package org.apache.flink.kubernetes.highavailability;

import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.JobID;
import org.apache.flink.core.fs.Path;
import org.apache.flink.runtime.checkpoint.CheckpointProperties;
import org.apache.flink.runtime.checkpoint.CheckpointRetentionPolicy;
import org.apache.flink.runtime.checkpoint.CompletedCheckpoint;
import org.apache.flink.runtime.checkpoint.Checkpoints;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.metadata.CheckpointMetadata;
import org.apache.flink.runtime.jobgraph.OperatorID;
import org.apache.flink.runtime.persistence.filesystem.FileSystemStateStorageHelper;
import org.apache.flink.runtime.state.CompletedCheckpointStorageLocation;
import org.apache.flink.runtime.state.RetrievableStateHandle;
import org.apache.flink.runtime.state.filesystem.AbstractFsCheckpointStorageAccess;

/** Stores checkpoints as the JobManager does, and prints the entries of its config map: name, then value. */
public final class HaEntries {
    private HaEntries() {}

    /** Arguments: job id, folder of the high-availability storage, name of an entry marked for deletion or "-", then checkpoints. */
    public static void main(String[] arguments) throws Exception {
        JobID job = JobID.fromHexString(arguments[0]);
        FileSystemStateStorageHelper<CompletedCheckpoint> storage =
                new FileSystemStateStorageHelper<>(new Path(arguments[1]), "completedCheckpoint");
        for (int i = 3; i < arguments.length; i++) {
            CompletedCheckpointStorageLocation location =
                    AbstractFsCheckpointStorageAccess.resolveCheckpointPointer(arguments[i]);
            CheckpointMetadata metadata;
            try (java.io.DataInputStream in =
                    new java.io.DataInputStream(location.getMetadataHandle().openInputStream())) {
                metadata =
                        Checkpoints.loadCheckpointMetadata(
                                in, HaEntries.class.getClassLoader(), location.getExternalPointer());
            }
            Map<OperatorID, OperatorState> states = new HashMap<>();
            for (OperatorState state : metadata.getOperatorStates()) {
                states.put(state.getOperatorID(), state);
            }
            CheckpointProperties properties =
                    CheckpointProperties.forCheckpoint(CheckpointRetentionPolicy.RETAIN_ON_CANCELLATION);
            long id = metadata.getCheckpointId();
            CompletedCheckpoint checkpoint =
                    new CompletedCheckpoint(
                            job, id, 1000L, 2000L, states, new ArrayList<>(metadata.getMasterStates()), properties, location, null);
            RetrievableStateHandle<CompletedCheckpoint> handle = storage.store(checkpoint);
            KubernetesStateHandleStore.StateHandleWithDeleteMarker<CompletedCheckpoint> marked =
                    new KubernetesStateHandleStore.StateHandleWithDeleteMarker<>(handle);
            String name = String.format("checkpointID-%019d", id);
            if (name.equals(arguments[2])) {
                marked = marked.toDeleting();
            }
            System.out.println(name + "\t" + KubernetesStateHandleStore.serializeStateHandle(marked));
        }
    }
}
