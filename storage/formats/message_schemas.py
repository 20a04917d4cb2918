"""What records of Kafka's internal topics are made of, as Kafka 4.3.1 reads them.

Those of `__consumer_offsets` and `__transaction_state`, the values of the quorum's control records,
and all records of the metadata log.

A line with `key` or `value`, the type of the record, its name and its newest version, and from
which version on it is flexible; then a line for each field: name, type, in which versions it stands
if not in all, whether it may be null, and its tag. Fields of a struct stand indented below it.
A value of the metadata log begins with its frame, type and version (`metadata_records`), and every
version is flexible.
Source: Kafka, group-coordinator, transaction-coordinator and metadata, common/message/*.json and
common/metadata/*.json; of control records clients, common/message: LeaderChangeMessage,
KRaftVersionRecord and VotersRecord.
"""

GROUP_COORDINATOR = """
key 0 LegacyOffsetCommit 0
 group string
 topic string
 partition int32
value 0 LegacyOffsetCommit 0
 offset int64
 metadata string
 commitTimestamp int64
key 1 OffsetCommit 0
 group string
 topic string
 partition int32
value 1 OffsetCommit 4 flexible 4
 offset int64
 leaderEpoch int32 3+
 metadata string
 commitTimestamp int64
 expireTimestamp int64 1
 topicId uuid 4+ tag 0
key 2 GroupMetadata 0
 group string
value 2 GroupMetadata 4 flexible 4
 protocolType string
 generation int32
 protocol string nullable
 leader string nullable
 currentStateTimestamp int64 2+
 members []struct
  memberId string
  groupInstanceId string 3+ nullable
  clientId string
  clientHost string
  rebalanceTimeout int32 1+
  sessionTimeout int32
  subscription bytes
  assignment bytes
key 3 ConsumerGroupMetadata 0
 groupId string
value 3 ConsumerGroupMetadata 0 flexible 0
 epoch int32
 metadataHash int64 tag 0
key 4 ConsumerGroupPartitionMetadata 0
 groupId string
value 4 ConsumerGroupPartitionMetadata 0 flexible 0
 topics []struct
  topicId uuid
  topicName string
  numPartitions int32
  partitionMetadata []struct
   partition int32
   racks []string
key 5 ConsumerGroupMemberMetadata 0
 groupId string
 memberId string
value 5 ConsumerGroupMemberMetadata 0 flexible 0
 instanceId string nullable
 rackId string nullable
 clientId string
 clientHost string
 subscribedTopicNames []string
 subscribedTopicRegex string nullable
 rebalanceTimeoutMs int32
 serverAssignor string nullable
 classicMemberMetadata struct nullable tag 0
  sessionTimeoutMs int32
  supportedProtocols []struct
   name string
   metadata bytes
key 6 ConsumerGroupTargetAssignmentMetadata 0
 groupId string
value 6 ConsumerGroupTargetAssignmentMetadata 0 flexible 0
 assignmentEpoch int32
 assignmentTimestamp int64 tag 0
key 7 ConsumerGroupTargetAssignmentMember 0
 groupId string
 memberId string
value 7 ConsumerGroupTargetAssignmentMember 0 flexible 0
 topicPartitions []struct
  topicId uuid
  partitions []int32
key 8 ConsumerGroupCurrentMemberAssignment 0
 groupId string
 memberId string
value 8 ConsumerGroupCurrentMemberAssignment 0 flexible 0
 memberEpoch int32
 previousMemberEpoch int32
 state int8
 assignedPartitions []struct
  topicId uuid
  partitions []int32
  assignmentEpochs []int32 nullable tag 0
 partitionsPendingRevocation []struct
  topicId uuid
  partitions []int32
  assignmentEpochs []int32 nullable tag 0
key 10 ShareGroupMemberMetadata 0
 groupId string
 memberId string
value 10 ShareGroupMemberMetadata 0 flexible 0
 rackId string nullable
 clientId string
 clientHost string
 subscribedTopicNames []string
key 11 ShareGroupMetadata 0
 groupId string
value 11 ShareGroupMetadata 0 flexible 0
 epoch int32
 metadataHash int64
key 12 ShareGroupTargetAssignmentMetadata 0
 groupId string
value 12 ShareGroupTargetAssignmentMetadata 0 flexible 0
 assignmentEpoch int32
 assignmentTimestamp int64 tag 0
key 13 ShareGroupTargetAssignmentMember 0
 groupId string
 memberId string
value 13 ShareGroupTargetAssignmentMember 0 flexible 0
 topicPartitions []struct
  topicId uuid
  partitions []int32
key 14 ShareGroupCurrentMemberAssignment 0
 groupId string
 memberId string
value 14 ShareGroupCurrentMemberAssignment 0 flexible 0
 memberEpoch int32
 previousMemberEpoch int32
 state int8
 assignedPartitions []struct
  topicId uuid
  partitions []int32
key 15 ShareGroupStatePartitionMetadata 0
 groupId string
value 15 ShareGroupStatePartitionMetadata 0 flexible 0
 initializingTopics []struct
  topicId uuid
  topicName string
  partitions []int32
 initializedTopics []struct
  topicId uuid
  topicName string
  partitions []int32
 deletingTopics []struct
  topicId uuid
  topicName string
key 16 ConsumerGroupRegularExpression 0
 groupId string
 regularExpression string
value 16 ConsumerGroupRegularExpression 0 flexible 0
 topics []string
 version int64
 timestamp int64
key 17 StreamsGroupMetadata 0
 groupId string
value 17 StreamsGroupMetadata 0 flexible 0
 epoch int32
 metadataHash int64
 validatedTopologyEpoch int32 tag 0
 lastAssignmentConfigs []struct nullable tag 1
  key string
  value string
key 19 StreamsGroupMemberMetadata 0
 groupId string
 memberId string
value 19 StreamsGroupMemberMetadata 0 flexible 0
 instanceId string nullable
 rackId string nullable
 clientId string
 clientHost string
 rebalanceTimeoutMs int32
 topologyEpoch int32
 processId string
 userEndpoint struct nullable
  host string
  port uint16
 clientTags []struct
  key string
  value string
key 20 StreamsGroupTargetAssignmentMetadata 0
 groupId string
value 20 StreamsGroupTargetAssignmentMetadata 0 flexible 0
 assignmentEpoch int32
 assignmentTimestamp int64 tag 0
key 21 StreamsGroupTargetAssignmentMember 0
 groupId string
 memberId string
value 21 StreamsGroupTargetAssignmentMember 0 flexible 0
 activeTasks []struct
  subtopologyId string
  partitions []int32
 standbyTasks []struct
  subtopologyId string
  partitions []int32
 warmupTasks []struct
  subtopologyId string
  partitions []int32
key 22 StreamsGroupCurrentMemberAssignment 0
 groupId string
 memberId string
value 22 StreamsGroupCurrentMemberAssignment 0 flexible 0
 memberEpoch int32
 previousMemberEpoch int32
 state int8
 activeTasks []struct
  subtopologyId string
  partitions []int32
  assignmentEpochs []int32 nullable tag 0
 standbyTasks []struct
  subtopologyId string
  partitions []int32
  assignmentEpochs []int32 nullable tag 0
 warmupTasks []struct
  subtopologyId string
  partitions []int32
  assignmentEpochs []int32 nullable tag 0
 activeTasksPendingRevocation []struct
  subtopologyId string
  partitions []int32
  assignmentEpochs []int32 nullable tag 0
 standbyTasksPendingRevocation []struct
  subtopologyId string
  partitions []int32
  assignmentEpochs []int32 nullable tag 0
 warmupTasksPendingRevocation []struct
  subtopologyId string
  partitions []int32
  assignmentEpochs []int32 nullable tag 0
key 23 StreamsGroupTopology 0
 groupId string
value 23 StreamsGroupTopology 0 flexible 0
 epoch int32
 subtopologies []struct
  subtopologyId string
  sourceTopics []string
  sourceTopicRegex []string
  stateChangelogTopics []struct
   name string
   partitions int32
   replicationFactor int16
   topicConfigs []struct
    key string
    value string
  repartitionSinkTopics []string
  repartitionSourceTopics []struct
   name string
   partitions int32
   replicationFactor int16
   topicConfigs []struct
    key string
    value string
  copartitionGroups []struct
   sourceTopics []int16
   sourceTopicRegex []int16
   repartitionSourceTopics []int16
"""

TRANSACTION_COORDINATOR = """
key 0 TransactionLog 0
 transactionalId string
value 0 TransactionLog 1 flexible 1
 producerId int64
 previousProducerId int64 1+ tag 0
 nextProducerId int64 1+ tag 1
 producerEpoch int16
 nextProducerEpoch int16 1+ tag 3
 transactionTimeoutMs int32
 transactionStatus int8
 transactionPartitions []struct nullable
  topic string
  partitionIds []int32
 transactionLastUpdateTimestampMs int64
 transactionStartTimestampMs int64
 clientTransactionVersion int16 1+ tag 2
"""

CONTROL_OF_QUORUM = """
value 2 LeaderChange 1 flexible 0
 leaderId int32
 voters []struct
  voterId int32
  voterDirectoryId uuid 1+
 grantingVoters []struct
  voterId int32
  voterDirectoryId uuid 1+
value 5 KRaftVersion 0 flexible 0
 kRaftVersion int16
value 6 KRaftVoters 0 flexible 0
 voters []struct
  voterId int32
  voterDirectoryId uuid
  endpoints []struct
   name string
   host string
   port uint16
  kRaftVersionFeature struct
   minSupportedVersion int16
   maxSupportedVersion int16
"""


METADATA = """
value 0 RegisterBrokerRecord 4 flexible 0
 brokerId int32
 isMigratingZkBroker bool 2+
 incarnationId uuid
 brokerEpoch int64
 endPoints []struct
  name string
  host string
  port uint16
  securityProtocol int16
 features []struct
  name string
  minSupportedVersion int16
  maxSupportedVersion int16
 rack string nullable
 fenced bool
 inControlledShutdown bool 1+
 logDirs []uuid 3+ tag 0
 cordonedLogDirs []uuid 4+ nullable tag 1
value 1 UnregisterBrokerRecord 0 flexible 0
 brokerId int32
 brokerEpoch int64
value 2 TopicRecord 0 flexible 0
 name string
 topicId uuid
value 3 PartitionRecord 2 flexible 0
 partitionId int32
 topicId uuid
 replicas []int32
 isr []int32
 removingReplicas []int32
 addingReplicas []int32
 leader int32
 leaderRecoveryState int8 tag 0
 leaderEpoch int32
 partitionEpoch int32
 directories []uuid 1+
 eligibleLeaderReplicas []int32 2+ nullable tag 1
 lastKnownElr []int32 2+ nullable tag 2
value 4 ConfigRecord 0 flexible 0
 resourceType int8
 resourceName string
 name string
 value string nullable
value 5 PartitionChangeRecord 2 flexible 0
 partitionId int32
 topicId uuid
 isr []int32 nullable tag 0
 leader int32 tag 1
 replicas []int32 nullable tag 2
 removingReplicas []int32 nullable tag 3
 addingReplicas []int32 nullable tag 4
 leaderRecoveryState int8 tag 5
 directories []uuid 1+ nullable tag 8
 eligibleLeaderReplicas []int32 2+ nullable tag 6
 lastKnownElr []int32 2+ nullable tag 7
value 7 FenceBrokerRecord 0 flexible 0
 id int32
 epoch int64
value 8 UnfenceBrokerRecord 0 flexible 0
 id int32
 epoch int64
value 9 RemoveTopicRecord 0 flexible 0
 topicId uuid
value 10 DelegationTokenRecord 0 flexible 0
 owner string
 requester string
 renewers []string
 issueTimestamp int64
 maxTimestamp int64
 expirationTimestamp int64
 tokenId string
value 11 UserScramCredentialRecord 0 flexible 0
 name string
 mechanism int8
 salt bytes
 storedKey bytes
 serverKey bytes
 iterations int32
value 12 FeatureLevelRecord 0 flexible 0
 name string
 featureLevel int16
value 14 ClientQuotaRecord 0 flexible 0
 entity []struct
  entityType string
  entityName string nullable
 key string
 value float64
 remove bool
value 15 ProducerIdsRecord 0 flexible 0
 brokerId int32
 brokerEpoch int64
 nextProducerId int64
value 17 BrokerRegistrationChangeRecord 3 flexible 0
 brokerId int32
 brokerEpoch int64
 fenced int8 tag 0
 inControlledShutdown int8 1+ tag 1
 logDirs []uuid 2+ tag 2
 cordonedLogDirs []uuid 3+ nullable tag 3
value 18 AccessControlEntryRecord 0 flexible 0
 id uuid
 resourceType int8
 resourceName string
 patternType int8
 principal string
 host string
 operation int8
 permissionType int8
value 19 RemoveAccessControlEntryRecord 0 flexible 0
 id uuid
value 20 NoOpRecord 0 flexible 0
value 21 ZkMigrationStateRecord 0 flexible 0
 zkMigrationState int8
value 22 RemoveUserScramCredentialRecord 0 flexible 0
 name string
 mechanism int8
value 23 BeginTransactionRecord 0 flexible 0
 name string nullable tag 0
value 24 EndTransactionRecord 0 flexible 0
value 25 AbortTransactionRecord 0 flexible 0
 reason string nullable tag 0
value 26 RemoveDelegationTokenRecord 0 flexible 0
 tokenId string
value 27 RegisterControllerRecord 0 flexible 0
 controllerId int32
 incarnationId uuid
 zkMigrationReady bool
 endPoints []struct
  name string
  host string
  port uint16
  securityProtocol int16
 features []struct
  name string
  minSupportedVersion int16
  maxSupportedVersion int16
value 28 ClearElrRecord 0 flexible 0
 topicName string
"""
